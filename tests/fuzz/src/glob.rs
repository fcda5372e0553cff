//! Tests the patterns of the embedded store, which must match like a simple definition.

use crate::draw::Draw;

#[path = "../../../optimus-embedded/src/glob.rs"]
mod matcher;

use matcher::matches;

/// The longest pattern or text for the definition, which takes exponential time for many stars.
const DEFINED_BYTES_MAX: usize = 12;

/// Checks that a literal matches only itself, that a star matches any text, and that no other
/// pattern panics.
pub(crate) fn check(data: &[u8]) {
    let mut draw = Draw(data);
    let (pattern_bytes, other_bytes) = (usize::from(draw.byte()), usize::from(draw.byte()));
    let (pattern, other) = (draw.bytes(pattern_bytes), draw.bytes(other_bytes));
    let text = draw.0;
    let matched = matches(pattern, text);
    assert_eq!(matches(&escaped(other), text), other == text);
    assert!(matches(b"*", text));
    let around = [escaped(other).as_slice(), b"*", &escaped(text)].concat();
    assert!(matches(&around, &[other, pattern, text].concat()));
    let is_short = pattern.len().max(text.len()) <= DEFINED_BYTES_MAX;
    if is_short && !pattern.iter().any(|byte| b"[\\".contains(byte)) {
        assert_eq!(matched, is_match(pattern, text), "{pattern:?} {text:?}");
    }
}

fn escaped(text: &[u8]) -> Vec<u8> {
    text.iter().flat_map(|byte| [b'\\', *byte]).collect()
}

/// Defines the meaning of `*` and `?`.
fn is_match(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], _) => text.is_empty(),
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| is_match(rest, &text[at..])),
        ([_, ..], []) => false,
        ([first, rest @ ..], [byte, others @ ..]) => {
            (*first == b'?' || first == byte) && is_match(rest, others)
        }
    }
}
