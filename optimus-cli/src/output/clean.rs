//! Texts of tasks without what they could do to a terminal: escapes, colours, other directions of
//! writing, invisible characters.

use std::fmt::Write as _;

/// Returns whether a terminal shows the character as something else than itself.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' | '\u{feff}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{fff9}'..='\u{fffb}'
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
    fn clean_json_is_the_same_json() {
        let written = serde_json::to_string(HOSTILE).unwrap();
        let clean = json(&written);
        assert!(!clean.chars().any(is_hostile), "{clean}");
        assert_eq!(serde_json::from_str::<String>(&clean).unwrap(), HOSTILE);
    }
}
