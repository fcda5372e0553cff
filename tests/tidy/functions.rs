//! Finds the functions of a Rust file by their braces.

use crate::files::File;

/// A function with a body: the index of its first line, and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) lines: usize,
}

/// Returns the functions of a file, including nested ones.
pub(crate) fn functions(file: &File) -> Vec<Function> {
    let starts = file.code.iter().enumerate().flat_map(|(index, line)| {
        names(&line.code).into_iter().map(move |(column, name)| (index, column, name))
    });
    starts
        .filter_map(|(first, column, name)| {
            let last = end(file, first, column)?;
            Some(Function { name, first, lines: last - first + 1 })
        })
        .collect()
}

/// Returns the names after `fn` in a line, with the column after each name.
fn names(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let word_before = code[..at].chars().next_back().is_some_and(is_word);
        let name: String = code[at + 3..].chars().take_while(|&c| is_word(c)).collect();
        if !word_before && !name.is_empty() {
            found.push((at + 3 + name.len(), name));
        }
    }
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '#'
}

/// Returns the index of the line with the closing brace, or `None` for a function without a body.
fn end(file: &File, first: usize, column: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (index, line) in file.code.iter().enumerate().skip(first) {
        let from = if index == first { column } else { 0 };
        for c in line.code[from..].chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets = brackets.saturating_sub(1),
                ';' if braces == 0 && brackets == 0 => return None,
                '{' => braces += 1,
                '}' if braces <= 1 => return Some(index),
                '}' => braces -= 1,
                _ => {}
            }
        }
    }
    None
}

#[test]
fn functions_are_measured_from_their_name_to_their_last_brace() {
    let text = "trait T { fn none(&self) -> [u8; 2]; }\n\
                pub async fn outer(\n  f: impl Fn(u8),\n) {\n\
                  fn inner() {}\n  if a { \"}\" }\n}\n";
    let found = functions(&File::new("a/src/lib.rs", text));
    let expect = |name: &str, first, lines| Function { name: name.to_owned(), first, lines };
    assert_eq!(found, [expect("outer", 1, 6), expect("inner", 4, 1)]);
}
