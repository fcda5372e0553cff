//! Replaces what looks like a secret in a text: [`redact_text`], [`redact_beginning`].

use super::{REDACTED, is_secret};

/// Words that come before a secret, and are none.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "token"];

/// Where a text ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// Where its author has ended it.
    Whole,
    /// Perhaps within a secret, so that what shows the secret is missing.
    Cut,
}

/// Returns the text with the values of `password=x`, `token: x`, `"secret":"x"` and
/// `postgres://user:x@host` replaced, and whether one was.
pub fn redact_text(text: &str) -> (String, bool) {
    redact(text, End::Whole)
}

/// Returns the beginning of a text as [`redact_text`] does. `kept` is how many bytes or characters
/// were kept of the text before. If it has as many, it may end within a secret, such as the
/// password of a URL whose `@` was cut off.
pub fn redact_beginning(text: &str, kept: usize) -> (String, bool) {
    // A text that is cut to bytes ends at a character.
    let may_be_cut = text.len() + char::MAX.len_utf8() > kept;
    redact(text, if may_be_cut { End::Cut } else { End::Whole })
}

fn redact(text: &str, end: End) -> (String, bool) {
    let (mut done, mut is_changed, mut rest) = (String::with_capacity(text.len()), false, text);
    while let Some(at) = rest.find([':', '=']) {
        let (before, after) = rest.split_at(at);
        let after = &after[1..];
        let secret = if rest[at..].starts_with("://") {
            password_of_url(&after[2..], end).map(|(begin, end)| (begin + 2, end + 2))
        } else if is_secret(name_before(before)) {
            let name = name_before(before).to_ascii_lowercase();
            let is_header = rest[at..].starts_with(':')
                && ["authorization", "cookie"].iter().any(|end| name.ends_with(end));
            value(after, if is_header { Reach::Line } else { Reach::Word })
        } else {
            None
        };
        done.push_str(&rest[..=at]);
        rest = after;
        if let Some((begin, end)) = secret {
            done.push_str(&after[..begin]);
            done.push_str(REDACTED);
            rest = &after[end..];
            is_changed = true;
        }
    }
    done.push_str(rest);
    let (done, has_bearer) = bearers(&done, end);
    (done, is_changed || has_bearer)
}

/// Returns the name at the end of a text.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '"', '\'', '\\', ']', '[', '>']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begin = text.rfind(|c| !is_name(c));
    begin.map_or(text, |at| text[at..].trim_start_matches(|c| !is_name(c)))
}

/// How far a value without quotes goes.
#[derive(Clone, Copy)]
enum Reach {
    Word,
    Line,
}

/// Returns where the value at the begin of a text begins and ends. That of a header, as in
/// `Cookie: a=x; b=y`, is the rest of its line.
fn value(text: &str, reach: Reach) -> Option<(usize, usize)> {
    let is_before = |c: char| c.is_whitespace() || matches!(c, '>' | '=');
    let mut begin = text.len() - text.trim_start_matches(is_before).len();
    if let Some((from, to)) = quoted(&text[begin..]) {
        return (to > from).then_some((begin + from, begin + to));
    }
    let word = length(&text[begin..]);
    // `Authorization: Bearer x`
    if SCHEMES.iter().any(|scheme| text[begin..begin + word].eq_ignore_ascii_case(scheme)) {
        let rest = &text[begin + word..];
        begin += word + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }
    let rest = &text[begin..];
    let line = match reach {
        Reach::Line => rest.find(['\r', '\n']).unwrap_or(rest.len()),
        Reach::Word => 0,
    };
    let end = begin + length(rest).max(line);
    (end > begin).then_some((begin, end))
}

/// Returns where the inside of a quoted text at the begin of a text begins and ends. Its quotes may
/// be escaped, as in JSON that is a string of JSON.
fn quoted(text: &str) -> Option<(usize, usize)> {
    let slashes = text.len() - text.trim_start_matches('\\').len();
    let quote = text[slashes..].chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (begin, mut before) = (slashes + 1, 0);
    for (at, c) in text[begin..].char_indices() {
        // A quote of the text itself has more of them.
        if c == quote && before % (2 * (slashes + 1)) == slashes {
            return Some((begin, begin + at - slashes));
        }
        before = if c == '\\' { before + 1 } else { 0 };
    }
    Some((begin, text.len()))
}

/// Returns the length of a value without quotes: a word, with all that is in brackets, as in
/// `Some("x")`, `["x", "y"]` and `ApiKey { inner: "x" }`.
fn length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(c) = text[at..].chars().next() {
        let is_open =
            depth > 0 || (at < 8 && matches!(text[..at].trim_end_matches('#'), "b" | "r" | "br"));
        if let Some((_, end)) = is_open.then(|| quoted(&text[at..])).flatten() {
            let close = text[at + end..].find(['"', '\'']).map_or(0, |close| close + 1);
            at += end + close;
            continue;
        }
        if c == '\\' {
            at = text.len() - text[at..].trim_start_matches(c).len();
            continue;
        }
        let fields = if depth == 0 { to_fields(&text[at..]) } else { 0 };
        if fields > 0 {
            at += fields;
            continue;
        }
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth > 0 => depth -= 1,
            _ if depth == 0 && (c.is_whitespace() || ",;&\"')}]<".contains(c)) => return at,
            _ => {}
        }
        at += c.len_utf8();
    }
    text.len()
}

/// Returns how many spaces are at the begin of a text, if fields in braces follow, as behind the
/// name of a struct; otherwise 0.
fn to_fields(text: &str) -> usize {
    let rest = text.trim_start_matches(' ');
    if rest.starts_with('{') { text.len() - rest.len() } else { 0 }
}

/// Replaces the secret of each `Bearer x`, and returns whether there was one.
fn bearers(text: &str, end: End) -> (String, bool) {
    const WORD: &str = "bearer ";
    let (lower, mut done, mut from) = (text.to_ascii_lowercase(), String::new(), 0);
    while let Some(at) = lower[from..].find(WORD) {
        let begin = from + at + WORD.len();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        let rest = &text[begin..];
        let length = rest.find(|c| !is_token(c)).unwrap_or(rest.len());
        done.push_str(&text[from..begin]);
        let is_cut = end == End::Cut && begin + length == text.len() && length > 0;
        if length >= 8 || is_cut {
            done.push_str(REDACTED);
        } else {
            done.push_str(&rest[..length]);
        }
        from = begin + length;
    }
    let is_changed = done.contains(REDACTED) && done != text[..from];
    done.push_str(&text[from..]);
    (done, is_changed)
}

/// Returns where the password is in `user:password@host`. Of a text that is cut, it may be all
/// after the first colon, also before what follows the cut text. A port is no password there.
fn password_of_url(text: &str, end: End) -> Option<(usize, usize)> {
    let is_end = |c: char| c.is_whitespace() || "/?#\"'<>".contains(c);
    let authority = &text[..text.find(is_end).unwrap_or(text.len())];
    let user = match (authority.rsplit_once('@'), end) {
        (_, End::Cut) if authority.len() == text.len() => authority,
        (Some((user, _)), _) => user,
        (None, End::Cut) if !has_port(authority) => authority,
        (None, _) => return None,
    };
    let begin = user.find(':')? + 1;
    (begin < user.len()).then_some((begin, user.len()))
}

/// Returns whether a host may have only digits behind its colon, and then the end of a sentence.
fn has_port(authority: &str) -> bool {
    let port = authority.split_once(':').map_or("", |(_, port)| port);
    let port = port.trim_end_matches([')', ']', '}', ',', '.', ';', ':', '!']);
    authority.starts_with('[') || port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_behind_names_of_secrets_are_replaced() {
        for (text, expected) in [
            ("password=hunter2", "password=[redacted]"),
            ("login failed: password=hunter2, try 3", "login failed: password=[redacted], try 3"),
            ("api_key: abc def", "api_key: [redacted] def"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
            ("token = 'a b' x", "token = '[redacted]' x"),
            (r#"{"secret":"a,b","x":1}"#, r#"{"secret":"[redacted]","x":1}"#),
            (r#"{\"secret\":\"a,b\"}"#, r#"{\"secret\":\"[redacted]\"}"#),
            ("GET /?token=abc&x=1", "GET /?token=[redacted]&x=1"),
            ("postgres://ann:p@ss@db/x failed", "postgres://ann:[redacted]@db/x failed"),
            ("redis://:pw@host:6379/0", "redis://:[redacted]@host:6379/0"),
            ("cvv=123\npin=5", "cvv=[redacted]\npin=[redacted]"),
            ("password=x password=y", "password=[redacted] password=[redacted]"),
            ("passwörd token=é;x", "passwörd token=[redacted];x"),
            ("Config { api_key: ApiKey { inner: \"sk-1\" } }", "Config { api_key: [redacted] }"),
            ("{ token: Token { of: \"a } b\", at: 1 }, x: 2 }", "{ token: [redacted], x: 2 }"),
            ("C {\n  pin: Pin {\n    of: [1, 2],\n  },\n}", "C {\n  pin: [redacted],\n}"),
            ("password: Inner { of: Of { of: \"x", "password: [redacted]"),
        ] {
            assert_eq!(redact_text(text), (expected.to_owned(), true), "{text}");
        }
    }

    #[test]
    fn other_texts_stay_what_they_are() {
        for text in [
            "",
            ":",
            "=",
            "connect to smtp-7:25: timed out",
            "http://host:80/path",
            "http://ann@host/",
            "a=b; user: ann",
            "token=",
            "token: ",
            "no token here",
            "é:é=é",
        ] {
            assert_eq!(redact_text(text), (text.to_owned(), false), "{text}");
        }
    }

    #[test]
    fn a_text_that_was_cut_within_a_secret_shows_no_part_of_it() {
        let whole = "x postgres://ann:p@ss@db:5432/x, Authorization: Bearer 123456789";
        for kept in 0..=whole.len() {
            let (shown, _) = redact_beginning(&whole[..kept], kept);
            let shown = shown.replace("postgres://ann:[redacted]", "");
            let (url, header) = shown.split_once(',').unwrap_or((&shown, ""));
            let is_clean = !["p@", "ss", ":p"].iter().any(|part| url.contains(part))
                || "postgres://ann:".starts_with(url.trim_start_matches("x "));
            assert!(is_clean && !header.contains(['1', '2']), "{kept}: {shown}");
        }
        for (text, kept, expected) in [
            ("é redis://:pw", 13, "é redis://:[redacted]"),
            ("é redis://:pw", 14, "é redis://:[redacted]"),
            ("see http://host:80/x and", 24, "see http://host:80/x and"),
            ("redis://ann:pw\nat b", 20, "redis://ann:[redacted]\nat b"),
            ("(redis://ann:pw) at b", 21, "(redis://ann:[redacted] at b"),
            ("(see http://host:80) b", 22, "(see http://host:80) b"),
            ("bearer abc", 10, "bearer [redacted]"),
            ("bearer abc", 99, "bearer abc"),
            ("see http://host:80", 99, "see http://host:80"),
        ] {
            assert_eq!(redact_beginning(text, kept).0, expected, "{text} {kept}");
        }
    }

    #[test]
    fn a_long_text_takes_a_time_that_grows_with_its_length() {
        // With a time that grows with the square, this takes minutes.
        for part in ["token=", "token=x ", "token=x {", "://", ":", "a=\"", "x://a:b@"] {
            let long = part.repeat(200_000);
            assert!(!redact_text(&long).0.is_empty());
        }
    }
}
