//! Texts of tasks without what they could do to a terminal: escapes, colours, other directions of
//! writing, invisible characters.

use std::fmt::Write as _;

/// Returns whether a terminal shows the character as something else than itself, or as nothing. The
/// console marks the same ones (`RANGES` of its `marks.ts`).
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns the text in one line: a line break becomes `\n`, and a hostile character such as an
/// escape becomes `\u{1b}`.
pub(crate) fn line(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => clean.extend(c.escape_default()),
            c if is_hostile(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    clean
}

/// Returns the text with its lines, each of them clean.
pub(crate) fn lines(text: &str) -> String {
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns JSON in which hostile characters are escaped. They are only in its strings, because
/// serde writes no line break and nothing else of them outside.
pub(crate) fn json(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // A text takes any text.
                let _ = write!(clean, "\\u{unit:04x}");
            }
        } else {
            clean.push(c);
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    const HOSTILE: &str =
        "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}gnp.exe\u{200b}\u{e0041}\r\nb\tc\u{7f}";

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        let clean = line(HOSTILE);
        assert_eq!(
            clean,
            "a\\u{1b}[31mred\\u{7}\\u{9b}2J\\u{202e}gnp.exe\\u{200b}\\u{e0041}\\r\\nb\\tc\\u{7f}"
        );
        assert!(!clean.chars().any(is_hostile));
        assert_eq!(lines("one\u{1b}[2J\ntwo\u{85}three"), "one\\u{1b}[2J\ntwo\\u{85}three");
        assert_eq!(line("Grüße, 世界, привет, שלום"), "Grüße, 世界, привет, שלום");
    }

    #[test]
    fn the_console_and_the_command_line_mark_the_same_characters() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../optimus-console/web/src/text/marks.ts");
        let marks = fs::read_to_string(file).expect("the console is next to this package");
        let (_, ranges) = marks.split_once("RANGES: [number, number][] = [").unwrap();
        let (ranges, _) = ranges.split_once("\n];").unwrap();
        let code = |text: &str| u32::from_str_radix(text.trim().trim_start_matches("0x"), 16);
        let pairs = ranges.lines().filter_map(|line| {
            line.trim().trim_start_matches('[').trim_end_matches("],").split_once(", ")
        });
        let ranges: Vec<_> =
            pairs.map(|(from, to)| code(from).unwrap()..=code(to).unwrap()).collect();
        assert!(ranges.len() > 10, "{ranges:?}");
        for c in '\0'..=char::MAX {
            let is_marked = ranges.iter().any(|range| range.contains(&u32::from(c)));
            assert_eq!(is_hostile(c), is_marked, "U+{:04X}", u32::from(c));
        }
    }

    #[test]
    fn clean_json_is_the_same_json() {
        let written = serde_json::to_string(HOSTILE).unwrap();
        let clean = json(&written);
        assert!(!clean.chars().any(is_hostile), "{clean}");
        assert_eq!(serde_json::from_str::<String>(&clean).unwrap(), HOSTILE);
    }
}
