//! Lists the `redis.call`s of the scripts, and shows which of them were made and failed:
//! [`Coverage`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use optimus_core::broker::script_texts;
use optimus_embedded::simulation::RedisCall;

/// The place of a line in a script's joined text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The script.
    pub script: &'static str,
    /// The number of the line, counted from 1.
    pub line: usize,
}

/// The calls of one line. A line may contain several calls, which differ in their command or key.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The command and the key of each call that was made.
    made: BTreeSet<String>,
    /// The calls that were made before the script's first write.
    early: BTreeSet<String>,
    /// The calls that failed.
    failed: BTreeSet<String>,
}

/// The calls of all lines.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    seen: BTreeMap<Place, Seen>,
    failures: u64,
}

/// A line with calls that a script can reach, and its coverage.
#[derive(Clone, Debug)]
pub struct Site {
    /// The place of the line.
    pub place: Place,
    /// The text of the line.
    pub text: &'static str,
    /// The number of calls in the line.
    pub calls: usize,
    /// The number of calls that were made.
    pub made: usize,
    /// The number of calls that were made before the script's first write.
    pub early: usize,
    /// The number of calls that failed because of an injected error.
    pub failed: usize,
}

impl Coverage {
    /// Adds a call. Returns the text that distinguishes it from other calls of its line.
    pub(crate) fn add(&mut self, place: Place, call: &RedisCall<'_>) -> String {
        let seen = self.seen.entry(place).or_default();
        // Most lines have one call and run a thousand times, so they need no such text.
        let what = if is_crowded(place) { what(call.arguments) } else { String::new() };
        if !call.wrote && !seen.early.contains(&what) {
            seen.early.insert(what.clone());
        }
        if !seen.made.contains(&what) {
            seen.made.insert(what.clone());
        }
        what
    }

    /// Records that a call fails that was [added](Self::add).
    pub(crate) fn add_failure(&mut self, place: Place, what: &str) {
        self.failures += 1;
        self.seen.entry(place).or_default().failed.insert(what.to_owned());
    }

    /// Returns whether a call has failed.
    pub fn has_failed(&self, place: Place, what: &str) -> bool {
        self.seen.get(&place).is_some_and(|seen| seen.failed.contains(what))
    }

    /// Returns the number of calls that failed.
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Adds the coverage of another run.
    pub fn merge(&mut self, other: Self) {
        self.failures += other.failures;
        for (place, theirs) in other.seen {
            let ours = self.seen.entry(place).or_default();
            ours.made.extend(theirs.made);
            ours.early.extend(theirs.early);
            ours.failed.extend(theirs.failed);
        }
    }

    /// Returns every reachable line with calls, for every script.
    pub fn sites(&self) -> Vec<Site> {
        let site = |(place, (text, calls)): (&Place, &(&'static str, usize))| {
            let seen = self.seen.get(place).cloned().unwrap_or_default();
            let (made, early) = (seen.made.len().min(*calls), seen.early.len().min(*calls));
            let failed = seen.failed.len().min(*calls);
            Site { place: *place, text, calls: *calls, made, early, failed }
        };
        ALL.iter().map(site).collect()
    }
}

/// The text of each reachable line with calls, and its number of calls.
static ALL: LazyLock<BTreeMap<Place, (&'static str, usize)>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for (script, text, _) in script_texts() {
        for (line, text, calls) in reachable_calls(text) {
            all.insert(Place { script, line }, (text, calls));
        }
    }
    all
});

fn is_crowded(place: Place) -> bool {
    ALL.get(&place).is_some_and(|(_, calls)| *calls > 1)
}

/// Returns the command and the kind of key. Keys that differ only in the queue or in their owner
/// have one kind.
fn what(arguments: &[Vec<u8>]) -> String {
    let text = |at: usize| arguments.get(at).map(|bytes| String::from_utf8_lossy(bytes));
    let key = text(1).unwrap_or_default();
    let name = key.split_once("}:").map_or(&*key, |(_, name)| name);
    let kind = name.split(':').next().unwrap_or_default();
    format!("{} {kind}", text(0).unwrap_or_default())
}

/// Returns the lines with calls in a joined text, without those of functions that it never calls.
/// The first and the last line of a function begin at the first column.
fn reachable_calls(text: &'static str) -> Vec<(usize, &'static str, usize)> {
    let mut functions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let (mut main, mut inside) = (Vec::new(), None);
    let lines: Vec<&'static str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("local function ") {
            inside = rest.split('(').next();
        }
        match inside {
            Some(name) => functions.entry(name).or_default().push(at),
            None => main.push(at),
        }
        if *line == "end" {
            inside = None;
        }
    }
    let (mut reached, mut fresh) = (main.clone(), main);
    while !fresh.is_empty() {
        let called = |name: &&str| fresh.iter().any(|at| names(code(lines[*at]), name));
        let found: Vec<&str> = functions.keys().copied().filter(|name| called(name)).collect();
        fresh = found.into_iter().filter_map(|name| functions.remove(name)).flatten().collect();
        reached.extend(&fresh);
    }
    reached.sort_unstable();
    // Some scripts read `redis.call` once, as `call`.
    let named = |at: usize, name: &str| code(lines[at]).matches(name).count();
    let calls = |at: usize| named(at, "call(") - named(at, "pcall(");
    reached
        .into_iter()
        .filter(|at| calls(*at) > 0)
        .map(|at| (at + 1, lines[at].trim(), calls(at)))
        .collect()
}

/// Returns a line without its comment.
fn code(line: &str) -> &str {
    line.split("--").next().unwrap_or_default()
}

/// Returns whether the code contains this word.
fn names(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}
