//! Replaces the values of secret fields in JSON, and changes no other byte: [`redact_json`].

use super::{REDACTED, is_secret, redact_beginning, redact_text};

/// Returns the JSON with the values of secret fields replaced at any depth, and whether one was.
/// A text that is no JSON is redacted as a text.
pub fn redact_json(json: &str) -> (String, bool) {
    redact_with(json, redact_text)
}

/// Returns the JSON as [`redact_json`] does. A string in it that has `kept` bytes or more may end
/// within a secret: see [`redact_beginning`].
pub fn redact_json_of_beginnings(json: &str, kept: usize) -> (String, bool) {
    redact_with(json, |text| redact_beginning(text, kept))
}

fn redact_with(json: &str, redact: impl Fn(&str) -> (String, bool)) -> (String, bool) {
    if serde_json::from_str::<serde::de::IgnoredAny>(json).is_err() {
        return redact(json);
    }
    let done = String::with_capacity(json.len());
    let mut walk = Walk { json, at: 0, done, is_changed: false, redact };
    // What is valid ends with its text.
    while walk.at < json.len() {
        walk.step();
    }
    (walk.done, walk.is_changed)
}

/// Redacts a string as the text that it stands for; `None` if nothing is secret in it.
fn redact_literal(literal: &str, redact: impl Fn(&str) -> (String, bool)) -> Option<String> {
    let text: String = serde_json::from_str(literal).ok()?;
    let (redacted, is_changed) = redact(&text);
    is_changed.then(|| serde_json::to_string(&redacted).unwrap_or_default())
}

/// Copies valid JSON, token by token.
struct Walk<'a, R> {
    json: &'a str,
    at: usize,
    done: String,
    is_changed: bool,
    /// Redacts the text of a string.
    redact: R,
}

impl<'a, R: Fn(&str) -> (String, bool)> Walk<'a, R> {
    /// Copies a string, or all up to the next one.
    fn step(&mut self) {
        let rest = &self.json[self.at..];
        if !rest.starts_with('"') {
            let length = rest.find('"').unwrap_or(rest.len());
            return self.copy(length);
        }
        let literal = self.string(self.at);
        let after = self.at + literal.len();
        let space = self.space(after);
        if !self.json[after + space..].starts_with(':') {
            let redacted = redact_literal(literal, &self.redact);
            self.is_changed |= redacted.is_some();
            self.done.push_str(redacted.as_deref().unwrap_or(literal));
            self.at = after;
            return;
        }
        // A name may be written with escapes.
        let name: String = serde_json::from_str(literal).unwrap_or_else(|_| literal.to_owned());
        let colon = after + space + 1;
        let value = colon + self.space(colon);
        self.copy(value - self.at);
        if is_secret(&name) {
            self.skip_value();
            self.done.push('"');
            self.done.push_str(REDACTED);
            self.done.push('"');
            self.is_changed = true;
        }
    }

    fn copy(&mut self, length: usize) {
        self.done.push_str(&self.json[self.at..self.at + length]);
        self.at += length;
    }

    /// Returns how much space there is.
    fn space(&self, at: usize) -> usize {
        let rest = &self.json.as_bytes()[at..];
        rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    /// Returns the string that begins there, with its quotes.
    fn string(&self, at: usize) -> &'a str {
        let bytes = self.json.as_bytes();
        let mut end = at + 1;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        &self.json[at..(end + 1).min(bytes.len())]
    }

    /// Leaves out one value, however deep it is.
    fn skip_value(&mut self) {
        let bytes = self.json.as_bytes();
        let mut depth = 0_usize;
        while self.at < bytes.len() {
            match bytes[self.at] {
                b'"' => self.at += self.string(self.at).len(),
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' | b',' if depth == 0 => return,
                b'}' | b']' => {
                    depth -= 1;
                    self.at += 1;
                }
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    let is_end = |byte: &u8| b",]} \t\n\r".contains(byte);
                    let length = bytes[self.at..].iter().position(is_end);
                    self.at += length.unwrap_or(bytes.len() - self.at);
                }
            }
            if depth == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_fields_are_replaced_at_any_depth_and_nothing_else_is_changed() {
        for (json, expected) in [
            (r#"{"password":"x"}"#, r#"{"password":"[redacted]"}"#),
            (
                r#"{ "a" : 1 , "token" :  "x\"y" , "b":2}"#,
                r#"{ "a" : 1 , "token" :  "[redacted]" , "b":2}"#,
            ),
            (
                r#"[{"a":{"card":{"no":[1,{"x":"]"}],"y":null}}},3]"#,
                r#"[{"a":{"card":"[redacted]"}},3]"#,
            ),
            (r#"{"iban":123,"c":true}"#, r#"{"iban":"[redacted]","c":true}"#),
            (r#"{"iban":-1.5e3}"#, r#"{"iban":"[redacted]"}"#),
            (r#"{"secret":[] ,"a":[]}"#, r#"{"secret":"[redacted]" ,"a":[]}"#),
            (r#"{"pass\u0077ord":"x"}"#, r#"{"pass\u0077ord":"[redacted]"}"#),
            (r#"{"\"password":"x"}"#, r#"{"\"password":"[redacted]"}"#),
        ] {
            assert_eq!(redact_json(json), (expected.to_owned(), true), "{json}");
        }
    }

    #[test]
    fn numbers_and_texts_stay_what_they_are() {
        for json in [
            "9007199254740993",
            "[18446744073709551616, 1e400, 0.10, -0.0]",
            r#"{"user":"password","a":"{\"b\":1}","n":123456789012345678901234567890}"#,
            "  { }  ",
            r#""x\\""#,
            r#"["é\u0000\ud83d\ude00"]"#,
        ] {
            assert_eq!(redact_json(json), (json.to_owned(), false), "{json}");
        }
    }

    #[test]
    fn texts_in_strings_are_redacted_as_what_they_stand_for() {
        let json = r#"["password=a\nAuthorization: Bearer b","{\"pin\":\"1 2\"}"]"#;
        let expected = concat!(
            r#"["password=[redacted]\nAuthorization: Bearer [redacted]","#,
            r#""{\"pin\":\"[redacted]\"}"]"#
        );
        assert_eq!(redact_json(json).0, expected);
    }

    #[test]
    fn a_string_that_was_cut_within_a_password_is_redacted() {
        let json = r#"{"error":"no route to redis://ann:s3cr"}"#;
        assert!(redact_json(json).0.contains("s3cr"));
        let kept = "no route to redis://ann:s3cr".len();
        assert!(!redact_json_of_beginnings(json, kept).0.contains("s3cr"));
        assert!(redact_json_of_beginnings(json, kept + 10).0.contains("s3cr"), "it is whole");
    }

    #[test]
    fn deep_and_broken_texts_are_redacted_too() {
        let deep = format!("{{\"token\":{}1{}}}", "[".repeat(100), "]".repeat(100));
        assert_eq!(redact_json(&deep).0, r#"{"token":"[redacted]"}"#);
        let deeper = format!("{}token=x", "[".repeat(100_000));
        assert!(redact_json(&deeper).0.ends_with("token=[redacted]"));
        assert_eq!(redact_json("{\"password\":\"x").0, "{\"password\":\"[redacted]");
        assert_eq!(
            redact_json(r#"["call ?token=abc&x=1"]"#).0,
            r#"["call ?token=[redacted]&x=1"]"#
        );
    }
}
