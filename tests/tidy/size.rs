//! Rules of size: small files and functions are easier to read.

use crate::files::File;
use crate::functions::functions;
use crate::{Finding, hold};

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_WIDTH_MAX: usize = 100;

fn long_file(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    let long = (file.is_rust() || file.is_lua()) && lines > FILE_LINES_MAX;
    long.then(|| file.at(lines - 1, format!("{lines} lines"))).into_iter().collect()
}

fn long_functions(file: &File) -> Vec<Finding> {
    if !file.is_rust() {
        return Vec::new();
    }
    let long = functions(file).into_iter().filter(|function| function.lines > FUNCTION_LINES_MAX);
    long.map(|function| {
        file.at(function.first, format!("fn {} has {} lines", function.name, function.lines))
    })
    .collect()
}

fn wide_lines(file: &File) -> Vec<Finding> {
    if !(file.is_rust() || file.is_lua()) {
        return Vec::new();
    }
    let widths = file.text.lines().map(|line| line.chars().count()).enumerate();
    let wide = widths.filter(|(_, width)| *width > LINE_WIDTH_MAX);
    wide.map(|(index, width)| file.at(index, format!("{width} columns"))).collect()
}

#[test]
fn no_file_is_above_400_lines() {
    hold("split the file: one noun, one role or one verb in each file", long_file);
}

#[test]
fn no_function_is_above_70_lines() {
    hold("move the steps of the function into functions with names", long_functions);
}

#[test]
fn no_line_is_wider_than_100_columns() {
    hold("break the line; rustfmt does not break strings and comments", wide_lines);
}

#[test]
fn a_file_function_or_line_that_is_too_large_is_found() {
    let lines = |n: usize| "//\n".repeat(n);
    assert!(long_file(&File::new("a/src/b.rs", &lines(400))).is_empty());
    assert_eq!(long_file(&File::new("lua/b.lua", &lines(401))), ["lua/b.lua:401: 401 lines"]);

    let function = |n: usize| format!("\nfn f() {{\n{}}}\n", lines(n - 2));
    assert!(long_functions(&File::new("a/src/b.rs", &function(70))).is_empty());
    let found = long_functions(&File::new("a/src/b.rs", &function(71)));
    assert_eq!(found, ["a/src/b.rs:2: fn f has 71 lines"]);

    let wide = format!("{}\n{}", "ä".repeat(100), "a".repeat(101));
    assert_eq!(wide_lines(&File::new("a/src/b.rs", &wide)), ["a/src/b.rs:2: 101 columns"]);
}
