//! Parses Rust only as far as necessary to distinguish code from comments, strings and tests.

/// One line of a Rust file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The line with its comments and the contents of its strings blanked.
    pub(crate) code: String,
    /// Whether the line belongs to an item under `#[cfg(test)]`.
    pub(crate) test: bool,
}

enum Mode {
    Code,
    LineComment,
    /// A block comment with this nesting depth.
    BlockComment(usize),
    Text,
    /// A raw string. It ends with a quote and this many `#`.
    RawText(usize),
}

/// Returns the lines of a Rust file.
pub(crate) fn scan(text: &str) -> Vec<Line> {
    let code = blank(text);
    let mut marker = TestMarker::default();
    code.lines().map(|code| Line { test: marker.mark(code), code: code.to_owned() }).collect()
}

fn blank(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let (mut mode, mut at) = (Mode::Code, 0);
    while at < chars.len() {
        let (next, width, keep) = step(&mode, &chars, at);
        for &c in &chars[at..(at + width).min(chars.len())] {
            code.push(if keep || c == '\n' { c } else { ' ' });
        }
        at += width;
        mode = next.unwrap_or(mode);
    }
    code
}

/// Returns the token that begins at `at`: the next mode if it changes, the number of characters,
/// and whether they are code.
fn step(mode: &Mode, chars: &[char], at: usize) -> (Option<Mode>, usize, bool) {
    let two = (chars[at], chars.get(at + 1).copied().unwrap_or('\0'));
    match (mode, two) {
        (Mode::Code, ('/', '/')) => (Some(Mode::LineComment), 2, false),
        (Mode::Code, ('/', '*')) => (Some(Mode::BlockComment(1)), 2, false),
        (Mode::Code, ('"', _)) => (Some(Mode::Text), 1, true),
        (Mode::Code, ('\'', _)) => {
            let width = quoted_char(chars, at);
            (None, width, width == 1)
        }
        (Mode::Code, ('r', '"' | '#')) if !is_word_before(chars, at) => {
            let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
            let is_text = chars.get(at + 1 + hashes) == Some(&'"');
            if is_text { (Some(Mode::RawText(hashes)), hashes + 2, true) } else { (None, 1, true) }
        }
        (Mode::LineComment, ('\n', _)) | (Mode::Text, ('"', _)) => (Some(Mode::Code), 1, true),
        (Mode::BlockComment(depth), ('/', '*')) => (Some(Mode::BlockComment(depth + 1)), 2, false),
        (Mode::BlockComment(1), ('*', '/')) => (Some(Mode::Code), 2, false),
        (Mode::BlockComment(depth), ('*', '/')) => (Some(Mode::BlockComment(depth - 1)), 2, false),
        (Mode::Text, ('\\', _)) => (None, 2, false),
        (Mode::RawText(hashes), ('"', _)) if closes(chars, at + 1, *hashes) => {
            (Some(Mode::Code), hashes + 1, true)
        }
        (Mode::Code, _) => (None, 1, true),
        _ => (None, 1, false),
    }
}

/// Returns the width of a character literal at `at`, or 1 for the quote of a lifetime.
fn quoted_char(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => chars[at + 3..].iter().position(|&c| c == '\'').map_or(1, |end| end + 4),
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

fn is_word_before(chars: &[char], at: usize) -> bool {
    // `br"…"` and `cr"…"` are raw strings too.
    let word = |c: &char| (c.is_alphanumeric() || *c == '_') && !matches!(c, 'b' | 'c');
    at > 0 && word(&chars[at - 1])
}

fn closes(chars: &[char], at: usize, hashes: usize) -> bool {
    chars.len() >= at + hashes && chars[at..at + hashes].iter().all(|&c| c == '#')
}

/// Follows an item under `#[cfg(test)]` to its end.
#[derive(Default)]
struct TestMarker {
    /// The number of open braces in such an item.
    inside: Option<usize>,
}

impl TestMarker {
    fn mark(&mut self, code: &str) -> bool {
        if self.inside.is_none() && code.trim_start().starts_with("#[cfg(test)]") {
            self.inside = Some(0);
        }
        let Some(mut depth) = self.inside else { return false };
        for c in code.chars() {
            match c {
                '{' => depth += 1,
                '}' => depth = depth.saturating_sub(1),
                ';' => {}
                _ => continue,
            }
            if depth == 0 {
                self.inside = None;
                return true;
            }
        }
        self.inside = Some(depth);
        true
    }
}

#[test]
fn comments_and_the_contents_of_strings_are_not_code() {
    let code = |text: &str| scan(text).into_iter().map(|line| line.code).collect::<Vec<_>>();
    assert_eq!(code("a(); // b()"), ["a();       "]);
    assert_eq!(code("a /* b /* c */ d */ e"), ["a                   e"]);
    assert_eq!(code(r#"f("x\"{y")"#), [r#"f("     ")"#]);
    assert_eq!(code("r#\"a\"b\"#; r#fn"), ["r#\"   \"#; r#fn"]);
    assert_eq!(code("fn f<'a>(x: &'a str) // {"), ["fn f<'a>(x: &'a str)     "]);
    assert_eq!(code("\"a\nb\" + c"), ["\" ", " \" + c"]);
}

#[test]
fn a_quote_or_a_brace_as_a_character_is_not_a_string_or_a_block() {
    let code = |text: &str| scan(text).remove(0).code;
    assert_eq!(code(r#"a('"'); b("c")"#), r#"a(   ); b(" ")"#);
    assert_eq!(code(r"a('\''); '{'"), "a(    );    ");
}

#[test]
fn an_item_under_cfg_test_is_test_code_and_what_follows_is_not() {
    let text = "a\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nc\n#[cfg(test)]\nmod d;\ne";
    let marks: Vec<bool> = scan(text).into_iter().map(|line| line.test).collect();
    assert_eq!(marks, [false, true, true, true, true, false, true, true, false]);
}
