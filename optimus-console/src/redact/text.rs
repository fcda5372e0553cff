//! Replaces what looks like a secret in a text: [`redact_text`].

use super::{REDACTED, is_secret};

/// Words that come before a secret, and are none.
const SCHEMES: [&str; 4] = ["bearer", "basic", "digest", "token"];

/// Returns the text with the values of `password=x`, `token: x`, `"secret":"x"` and
/// `postgres://user:x@host` replaced, and whether one was.
pub(crate) fn redact_text(text: &str) -> (String, bool) {
    let (mut done, mut is_changed, mut rest) = (String::with_capacity(text.len()), false, text);
    while let Some(at) = rest.find([':', '=']) {
        let (before, after) = rest.split_at(at);
        let after = &after[1..];
        let secret = if rest[at..].starts_with("://") {
            password_of_url(&after[2..]).map(|(begin, end)| (begin + 2, end + 2))
        } else if is_secret(name_before(before)) {
            value(after)
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
    (done, is_changed)
}

/// Returns the name at the end of a text.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '"', '\'', '\\', ']', '[', '>']);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begin = text.rfind(|c| !is_name(c));
    begin.map_or(text, |at| text[at..].trim_start_matches(|c| !is_name(c)))
}

/// Returns where the value at the begin of a text begins and ends.
fn value(text: &str) -> Option<(usize, usize)> {
    let begin = text.len() - text.trim_start_matches([' ', '>', '=']).len();
    let mut begin = begin;
    let quote = text[begin..].strip_prefix('\\').unwrap_or(&text[begin..]).chars().next()?;
    if matches!(quote, '"' | '\'') {
        begin += text[begin..].find(quote)? + 1;
        let length = text[begin..].find(quote).unwrap_or(text.len() - begin);
        let inside = &text[begin..begin + length];
        let length = length - (inside.len() - inside.trim_end_matches('\\').len());
        return (length > 0).then_some((begin, begin + length));
    }
    let length = |from: usize| {
        let is_end = |c: char| c.is_whitespace() || ",;&\"')}]<".contains(c);
        text[from..].find(is_end).unwrap_or(text.len() - from)
    };
    let word = length(begin);
    let named = &text[begin..begin + word];
    // `Authorization: Bearer x`
    if SCHEMES.iter().any(|scheme| named.eq_ignore_ascii_case(scheme)) {
        let rest = &text[begin + word..];
        begin += word + rest.len() - rest.trim_start_matches(' ').len();
    }
    let end = begin + length(begin);
    (end > begin).then_some((begin, end))
}

/// Returns where the password is in `user:password@host`.
fn password_of_url(text: &str) -> Option<(usize, usize)> {
    let is_end = |c: char| c.is_whitespace() || "/?#\"'<>".contains(c);
    let authority = &text[..text.find(is_end).unwrap_or(text.len())];
    let (user, _) = authority.rsplit_once('@')?;
    let begin = user.find(':')? + 1;
    (begin < user.len()).then_some((begin, user.len()))
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
    fn a_long_text_takes_a_time_that_grows_with_its_length() {
        // With a time that grows with the square, this takes minutes.
        for part in ["token=", "://", ":", "a=\"", "x://a:b@"] {
            let long = part.repeat(200_000);
            assert!(!redact_text(&long).0.is_empty());
        }
    }
}
