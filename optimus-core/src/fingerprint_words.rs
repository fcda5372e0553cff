//! Which parts of a message's words are numbers and ids, which do not count in a
//! [`Fingerprint`](crate::Fingerprint).

/// Words and parts of words of this length or longer are ids if they are hexadecimal and have a
/// digit.
const HEX_CHARS_MIN: usize = 6;

/// Words of this length or longer are ids if they have a digit, small letters and capitals.
const MIXED_CHARS_MIN: usize = 22;

/// The units that may stand right behind a number, in small letters.
const UNITS: [&str; 16] =
    ["ns", "us", "µs", "ms", "s", "m", "h", "d", "b", "kb", "mb", "gb", "kib", "mib", "gib", "tb"];

/// What stands for a number, an id or a quoted part.
pub(crate) const HOLE: char = '#';

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_')
}

/// Adds the word that begins at this character, and returns its length. A number with its decimals
/// and its unit becomes `#`, so does an id, and each number in another word.
pub(crate) fn push_word(outline: &mut String, line: &[char], at: usize) -> usize {
    if let Some(length) = amount(line, at) {
        outline.push(HOLE);
        return length;
    }
    let length = line[at..].iter().take_while(|c| is_word(**c)).count();
    let word = &line[at..at + length];
    if is_id(word) {
        outline.push(HOLE);
        return length;
    }
    let mut rest = word;
    while !rest.is_empty() {
        if let Some(length) = id_parts(rest) {
            outline.push(HOLE);
            rest = &rest[length..];
        } else {
            // A part of the word, and what separates it from the next one.
            let part = part_length(rest);
            let (part, others) = rest.split_at((part + 1).min(rest.len()));
            push_part(outline, part);
            rest = others;
        }
    }
    length
}

/// Returns the length of a number with decimals or a unit, if one begins at this character and is
/// all that is there. A version or an address has more than one point, and is none.
fn amount(line: &[char], at: usize) -> Option<usize> {
    if at >= 2 && line[at - 1] == '.' && line[at - 2].is_ascii_digit() {
        return None;
    }
    let digits = |from: usize| line[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let is_point = |at: usize| line.get(at) == Some(&'.');
    let mut end = at + digits(at);
    if end == at {
        return None;
    }
    let decimals = if is_point(end) { digits(end + 1) } else { 0 };
    if decimals > 0 {
        end += 1 + decimals;
    }
    let unit: String = line[end..].iter().take_while(|c| is_word(**c)).collect();
    if !unit.is_empty() && !UNITS.contains(&&*unit.to_lowercase()) {
        return None;
    }
    end += unit.chars().count();
    let goes_on = is_point(end) && line.get(end + 1).is_some_and(char::is_ascii_digit);
    (!goes_on).then_some(end - at)
}

fn has_digit(word: &[char]) -> bool {
    word.iter().any(char::is_ascii_digit)
}

fn is_hex(word: &[char]) -> bool {
    !word.is_empty() && word.iter().all(char::is_ascii_hexdigit)
}

/// Returns whether all of a word is an id.
fn is_id(word: &[char]) -> bool {
    let is_hex = word.iter().all(|c| c.is_ascii_hexdigit() || *c == '-');
    let is_mixed = word.iter().any(char::is_ascii_lowercase)
        && word.iter().any(char::is_ascii_uppercase)
        && word.len() >= MIXED_CHARS_MIN;
    has_digit(word) && (is_hex && word.len() >= HEX_CHARS_MIN || is_mixed)
}

fn part_length(word: &[char]) -> usize {
    word.iter().take_while(|c| !matches!(c, '-' | '_')).count()
}

/// Returns the length of the hexadecimal parts with which the rest of a word begins, if they are an
/// id: the first and the last have a digit, and one is long. So are the process and the random part
/// of a worker's id, and a uuid.
fn id_parts(rest: &[char]) -> Option<usize> {
    let (mut at, mut end, mut is_long) = (0, 0, false);
    loop {
        let part = &rest[at..at + part_length(&rest[at..])];
        if !is_hex(part) || at == 0 && !has_digit(part) {
            break;
        }
        if has_digit(part) {
            is_long |= part.len() >= HEX_CHARS_MIN;
            end = at + part.len();
        }
        at += part.len() + 1;
        if at >= rest.len() {
            break;
        }
    }
    is_long.then_some(end)
}

/// Adds a part of a word, with `#` for each number.
fn push_part(outline: &mut String, part: &[char]) {
    let mut in_number = false;
    for c in part {
        if !c.is_ascii_digit() {
            outline.push(*c);
        } else if !in_number {
            outline.push(HOLE);
        }
        in_number = c.is_ascii_digit();
    }
}
