//! Finds words that this repository no longer uses, because each thing has one name.

use crate::files::File;
use crate::{Finding, hold};

/// Each retired word, in all its forms, and what to write instead.
const RETIRED: [(&[&str], &str); 16] = [
    (&["keeper", "keepers"], "maintenance thread"),
    (&["relief"], "fallback reporter"),
    (&["judge", "judges", "judged", "judging"], "decide; a checker checks"),
    (&["stands in line", "stand in line", "back in line", "lines up"], "the ready list"),
    (&["bell", "bells", "doorbell", "doorbells"], "wakeup, wakeup list"),
    (&["ring", "rings", "rang", "rung", "rouse", "rouses", "roused"], "wake, interrupt"),
    (&["mailbox", "mailboxes"], "completion list"),
    (&["suspect", "suspects", "suspected"], "quarantined task"),
    (&["bury", "buries", "buried", "burying"], "mark Dead"),
    (&["sign off", "signs off", "signed off", "signing off"], "leave"),
    (&["anew", "in earnest"], "again, seriously"),
    (&["for ever"], "forever"),
    (&["by now"], "now, already"),
    (&["leave away", "left away"], "leave out"),
    (&["whoever", "thereby"], "anyone who, what"),
    (&["crew", "lonely", "overheard", "witness", "tether", "weather"], "what the thing does"),
];

/// The places where a retired word has another meaning: the place, the word, and that meaning.
const ALLOWED: [(&str, &str, &str); 9] = [
    ("Cargo.lock", "ring", "the crate for cryptography"),
    ("benches/peers/Cargo.lock", "ring", "the crate for cryptography"),
    ("Cargo.toml", "ring", "the crate for cryptography"),
    ("optimus-core/Cargo.toml", "ring", "the crate for cryptography"),
    ("optimus-core/src/broker/tls/mod.rs", "ring", "the crate for cryptography"),
    ("docs/PRODUCTION.md", "ring", "the crate for cryptography"),
    ("tests/kit/src/tls/front.rs", "ring", "the crate for cryptography"),
    ("CHANGELOG.md", "", "the page names things as they were called at that time"),
    ("tests/tidy/words.rs", "", "this list"),
];

fn retired(file: &File) -> Vec<Finding> {
    let path = file.path.as_str();
    let is_allowed =
        |found: &str| ALLOWED.iter().any(|(at, word, _)| *at == path && [found, ""].contains(word));
    let mut findings = Vec::new();
    // The name of the file counts as line 0.
    for (number, line) in std::iter::once(path).chain(file.text.lines()).enumerate() {
        let line = spread(line);
        for (words, instead) in RETIRED {
            let found = words.iter().filter(|word| line.contains(&format!(" {word} ")));
            let found = found.filter(|word| !is_allowed(word));
            findings.extend(found.map(|word| format!("{path}:{number}: {word}: {instead}")));
        }
    }
    findings
}

/// Returns the words of a line in lower case, with a space on each side, including the words of
/// `isRung` and `is_rung`. Punctuation stays between them.
fn spread(line: &str) -> String {
    let (mut spread, mut before) = (" ".to_owned(), ' ');
    for c in line.chars() {
        let is_letter = c.is_alphanumeric();
        let begins_word = before.is_lowercase() && c.is_uppercase();
        if (begins_word || !is_letter) && !spread.ends_with(' ') {
            spread.push(' ');
        }
        if is_letter {
            spread.extend(c.to_lowercase());
        } else if ![' ', '_', '-'].contains(&c) {
            spread.extend([c, ' ']);
        }
        before = c;
    }
    spread + " "
}

#[test]
fn no_retired_word_is_used() {
    hold("write what the finding names, or allow the word in tests/tidy/words.rs", retired);
}

#[test]
fn a_retired_word_is_found_in_names_and_texts() {
    let found = |path: &str, text: &str| retired(&File::new(path, text));
    assert_eq!(found("a/keeper.rs", "fn f() {}"), ["a/keeper.rs:0: keeper: maintenance thread"]);
    for text in
        ["/// A Bell.", "is_rung()", "struct OneRing;", "it signs off", "they rouse it, and"]
    {
        assert_eq!(found("a.rs", text).len(), 1, "{text}");
    }
    assert!(found("a.rs", "a string, forever; signs, off. By. Now").is_empty());
    assert!(found("Cargo.toml", "ring").is_empty() && found("CHANGELOG.md", "a bell").is_empty());
}
