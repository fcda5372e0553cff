//! A strict reader of the text format of Prometheus, version 0.0.4: [`read`].
//!
//! It follows the grammar that Prometheus documents, and its rules for whole families: one `HELP`
//! and one `TYPE` before the samples, all samples of a family together and each once, histograms
//! with growing buckets that end with `+Inf`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{ErrorKind, Write as _},
    process::{Command, Stdio},
};

/// The samples of a text.
#[derive(Debug, Default)]
pub struct Samples(BTreeMap<Key, f64>);

type Key = (String, BTreeMap<String, String>);

impl Samples {
    /// Returns how many samples there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of a sample with exactly these labels.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.0.get(&(name.to_owned(), labels.iter().map(own).collect())).copied()
    }

    /// Returns the names of all samples.
    pub fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(|(name, _)| name.as_str()).collect()
    }
}

/// Reads a text.
///
/// # Panics
/// The text breaks a rule; the message has the line.
#[track_caller]
pub fn read(text: &str) -> Samples {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line does not end");
    let mut samples = Samples::default();
    let (mut family, mut kind) = (String::new(), "");
    let (mut helped, mut seen) = (String::new(), BTreeSet::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            help.split(' ').next().unwrap_or_default().clone_into(&mut helped);
            assert!(is_name(&helped, ":") && seen.insert(helped.clone()), "{line}");
        } else if let Some(words) = line.strip_prefix("# TYPE ") {
            let (name, word) = words.split_once(' ').expect(line);
            assert_eq!(name, helped, "{line}");
            assert!(["counter", "gauge", "histogram"].contains(&word), "{line}");
            (family, kind) = (name.to_owned(), word);
        } else {
            let (name, labels, value) = sample(line);
            let suffix = name.strip_prefix(family.as_str()).expect(line);
            let allowed: &[&str] =
                if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(!family.is_empty() && allowed.contains(&suffix), "{line}");
            assert!(kind != "counter" || value >= 0.0, "{line}");
            assert!(samples.0.insert((name, labels), value).is_none(), "twice: {line}");
        }
    }
    check_histograms(&samples);
    samples
}

/// Lets `promtool check metrics` of Prometheus read a text, too, if this machine has the program.
///
/// # Panics
/// The program complains; the message has its words.
pub fn check_with_promtool(text: &str) {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut running = match promtool.stdout(Stdio::piped()).spawn() {
        Err(problem) if problem.kind() == ErrorKind::NotFound => return,
        started => started.expect("promtool can be run"),
    };
    let mut stdin = running.stdin.take().expect("stdin is a pipe");
    stdin.write_all(text.as_bytes()).expect("promtool reads all");
    drop(stdin);
    let ended = running.wait_with_output().expect("promtool ends");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

fn is_name(name: &str, also: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || also.contains(c);
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(fits)
}

/// Reads `name{label="value",…} value`.
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let end = line.find(['{', ' ']).expect(line);
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, ":"), "{line}");
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").expect(line);
            assert!(is_name(label, "") && !label.starts_with("__"), "{line}");
            let (value, after) = quoted(after, line);
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let value = match rest.strip_prefix(' ').expect(line) {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        number => {
            assert!(number.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)), "{line}");
            number.parse().expect(line)
        }
    };
    (name.to_owned(), labels, value)
}

/// Reads up to the closing quote. Returns the value, and what follows.
fn quoted<'a>(text: &'a str, line: &str) -> (String, &'a str) {
    let (mut value, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next().expect(line).1 {
                'n' => value.push('\n'),
                c @ ('\\' | '"') => value.push(c),
                _ => panic!("an escape that is not allowed: {line}"),
            },
            c => value.push(c),
        }
    }
    panic!("a label does not end: {line}");
}

fn check_histograms(samples: &Samples) {
    let mut rows: BTreeMap<Key, Vec<(f64, f64)>> = BTreeMap::new();
    for ((name, labels), below) in &samples.0 {
        let Some(end) = name.strip_suffix("_bucket").and(labels.get("le")) else { continue };
        let end = if end == "+Inf" { f64::INFINITY } else { end.parse().expect("a number") };
        let mut of = labels.clone();
        of.remove("le");
        rows.entry((name.replace("_bucket", "_count"), of)).or_default().push((end, *below));
    }
    for (key, mut buckets) in rows {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{key:?}: {buckets:?}");
        let last = buckets.last().copied();
        assert_eq!(last.map(|(end, _)| end), Some(f64::INFINITY), "{key:?}");
        assert_eq!(last.map(|(_, all)| all), samples.0.get(&key).copied(), "{key:?}");
        let sum = (key.0.replace("_count", "_sum"), key.1);
        assert!(samples.0.contains_key(&sum), "{sum:?}");
    }
}
