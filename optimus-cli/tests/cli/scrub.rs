//! Replaces what differs from run to run: ids, times, workers.

const UNITS: [&str; 5] = ["ms", "s", "min", "h", "d"];
const SIZES: [&str; 2] = ["B", "kB"];

/// Returns the text with `<id>`, `<instant>`, `<time>`, `<size>`, `<worker>` and `<host>`, and
/// without the widths of columns.
pub(crate) fn scrub(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        lines.push_str(if indent.is_empty() { "" } else { "  " });
        lines.push_str(&scrub_line(line.trim_start()));
        lines.push('\n');
    }
    lines
}

fn scrub_line(line: &str) -> String {
    let host = host();
    let words: Vec<String> = spread(line).iter().map(|word| scrub_word(word, &host)).collect();
    let mut scrubbed = String::new();
    let mut place = 0;
    while place < words.len() {
        let word = &words[place];
        let unit = words.get(place + 2).map(|unit| unit.trim_end_matches([',', ')', ';', ':']));
        let is_time = is_number(word.trim_start_matches('('))
            && unit.is_some_and(|unit| UNITS.contains(&unit));
        if is_time {
            let mut end = place + 3;
            // A second, smaller unit.
            let small = words.get(end + 1).is_some_and(|word| is_number(word))
                && words.get(end + 3).is_some_and(|unit| {
                    UNITS.contains(&unit.trim_end_matches([',', ')', ';', ':']))
                });
            if small {
                end += 4;
            }
            let tail: String = words[end - 1].chars().filter(|c| !c.is_ascii_lowercase()).collect();
            if word.starts_with('(') {
                scrubbed.push('(');
            }
            scrubbed.push_str("<time>");
            scrubbed.push_str(&tail);
            place = end;
            continue;
        }
        // The size of a record depends on ids of processes.
        if is_number(word.trim_start_matches('(')) && unit.is_some_and(|unit| SIZES.contains(&unit))
        {
            scrubbed.push_str("(<size>)");
            place += 3;
            continue;
        }
        scrubbed.push_str(word);
        place += 1;
    }
    scrubbed
}

/// Returns words and, between them, the space: one blank, or two for more.
fn spread(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in line.chars() {
        let last = words.last_mut().expect("there is a word");
        let is_space = !last.is_empty() && last.chars().all(|c| c == ' ');
        if (c == ' ') == is_space || last.is_empty() {
            if !(is_space && last.len() == 2) {
                last.push(c);
            }
        } else {
            words.push(c.to_string());
        }
    }
    words
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

fn scrub_word(word: &str, host: &str) -> String {
    if word.matches('~').count() > 1 {
        return "<cursor>".to_owned();
    }
    let mut scrubbed = word.to_owned();
    for (find, len, shown) in
        [(is_uuid as fn(&str) -> bool, 36, "<id>"), (is_instant, 20, "<instant>")]
    {
        while let Some(at) =
            (0..scrubbed.len()).find(|at| scrubbed.get(*at..at + len).is_some_and(find))
        {
            let mut end = at + len;
            // The rest of an instant: its fraction and its zone.
            while shown == "<instant>"
                && scrubbed[end..].starts_with(|c: char| c.is_ascii_digit() || "Z+:.".contains(c))
                && !scrubbed[end..].starts_with(": ")
                && scrubbed[end..] != *":"
            {
                end += 1;
            }
            scrubbed.replace_range(at..end, shown);
        }
    }
    if let Some(at) = scrubbed.find(&format!("{host}-{}-", std::process::id())) {
        let end = scrubbed[at..].find([',', ';', '"', '\'']).map_or(scrubbed.len(), |end| at + end);
        scrubbed.replace_range(at..end, "<worker>");
    }
    if scrubbed == host {
        return "<host>".to_owned();
    }
    if scrubbed == std::process::id().to_string() {
        return "<pid>".to_owned();
    }
    scrubbed
}

/// Returns the name of this machine, as ids of workers have it.
fn host() -> String {
    let name = std::process::Command::new("uname").arg("-n").output();
    String::from_utf8_lossy(&name.expect("each Unix has uname").stdout).trim().to_owned()
}

fn is_uuid(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

/// `2026-11-22T18:00:00` and one more character.
fn is_instant(text: &str) -> bool {
    text.char_indices().all(|(at, c)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        19 => c == 'Z' || c == '.' || c == '+',
        _ => c.is_ascii_digit(),
    })
}

#[test]
fn what_differs_is_replaced_and_the_rest_stays() {
    let line = "mail/019aa6f0-1111-7abc-8def-0123456789ab  welcome   dead    3 min 20 s ago   1  x";
    assert_eq!(scrub(line), "mail/<id>  welcome  dead  <time> ago  1  x\n");
    assert_eq!(
        scrub("ended  2026-11-22T18:00:00.123Z (5 s ago), 12 tasks"),
        "ended  <instant> (<time> ago), 12 tasks\n"
    );
    assert_eq!(scrub("dead       2 (423 B)"), "dead  2 (<size>)\n");
}
