//! Rules for the scripts. Each script has a header and one block that names every key and argument,
//! and is in the table and on the page.

use crate::files::{File, repository};
use crate::{Finding, hold, none};

const CHECKS: &str = "-- Checks.";
const PAGE: &str = "lua/README.md";
const TABLE: &str = "optimus-core/src/broker/scripts.rs";

fn headless(file: &File) -> Vec<Finding> {
    let header = format!("-- {}: ", file.stem());
    let headless = file.is_lua() && !file.text.starts_with(&header);
    headless.then(|| file.at(0, format!("does not begin with {header:?}"))).into_iter().collect()
}

/// Returns the uses of `KEYS` and `ARGV` by number below the naming block. A batch may iterate over
/// them from a base that the block names: `ARGV[base + i]`.
fn late_numbers(file: &File) -> Vec<Finding> {
    if !file.is_script() {
        return Vec::new();
    }
    let lines = || file.text.lines().enumerate();
    let Some((checks, _)) = lines().find(|(_, line)| line.starts_with(CHECKS)) else {
        return vec![file.at(0, format!("has no line {CHECKS:?}"))];
    };
    lines()
        .skip(checks)
        .filter(|(_, line)| has_number(line, "KEYS[") || has_number(line, "ARGV["))
        .map(|(index, line)| file.at(index, line.trim()))
        .collect()
}

fn has_number(line: &str, list: &str) -> bool {
    let numbered = |rest: &str| rest.trim_start().starts_with(|c: char| c.is_ascii_digit());
    line.split(list).skip(1).any(numbered)
}

/// Returns the patterns that are to match up to the end, and are tried at each byte of the text:
/// they begin neither at its begin nor with a literal, so they cost up to the square of its length.
/// Runs of digits (`%d+$`) are short.
fn slow_patterns(file: &File) -> Vec<Finding> {
    let is_slow = |text: &&str| text.ends_with('$') && text.starts_with(['[', '.', '(']);
    let lines = file.text.lines().enumerate().filter(|_| file.is_lua());
    lines
        .flat_map(|(at, line)| line.split('\'').skip(1).step_by(2).map(move |text| (at, text)))
        .filter(|(_, text)| is_slow(text))
        .map(|(at, text)| file.at(at, text))
        .collect()
}

/// Returns whether the page mentions the script, as `claim` or `claim.lua` in code style.
fn is_on_page(page: &str, name: &str) -> bool {
    [format!("`{name}`"), format!("`{name}.lua`"), format!("`lua/{name}.lua`")]
        .iter()
        .any(|mention| page.contains(mention))
}

fn is_in_table(table: &str, name: &str) -> bool {
    table.contains(&format!("\"{name}\"")) || table.contains(&format!("/{name}.lua"))
}

fn text_of(path: &str) -> &'static str {
    repository().iter().find(|file| file.path == path).map_or("", |file| &file.text)
}

#[test]
fn every_lua_file_begins_with_its_name() {
    hold(
        "begin the script with `-- <name>: <what it does>`, where the name is the file's name",
        headless,
    );
}

#[test]
fn no_pattern_costs_the_square_of_a_text() {
    hold("begin the pattern with `^`", slow_patterns);
}

#[test]
fn keys_and_arguments_are_named_once_above_the_checks() {
    hold(
        "name the key or argument in the block above `-- Checks.`, and use that name after the \
         block",
        late_numbers,
    );
}

#[test]
fn every_script_is_explained_and_loaded() {
    let (page, table) = (text_of(PAGE), text_of(TABLE));
    let forgotten = repository().iter().filter(|file| file.is_script()).flat_map(|file| {
        let name = file.stem();
        let missing = [(PAGE, is_on_page(page, name)), (TABLE, is_in_table(table, name))];
        let missing = missing.into_iter().filter(|(_, there)| !there);
        missing.map(|(place, _)| file.at(0, format!("is not in {place}"))).collect::<Vec<_>>()
    });
    none("add the script to the page and to the table, or delete it", forgotten);
}

#[test]
fn a_script_that_breaks_the_form_is_found() {
    let script = |body: &str| File::new("lua/claim.lua", &format!("-- claim: takes\n{body}"));
    let good = script("local a = KEYS[1], ARGV[1]\n-- Checks.\nx = KEYS[base + 1]\n-- Writes.\n");
    assert!(headless(&good).is_empty() && late_numbers(&good).is_empty());

    assert_eq!(headless(&File::new("lua/include/due.lua", "-- claim: x")).len(), 1);
    assert_eq!(late_numbers(&script("-- Checks.\ncall(KEYS[1])\ncall(ARGV[ 2], a)")).len(), 2);
    assert_eq!(late_numbers(&script("call(KEYS[1])")).len(), 1, "a script without checks");

    assert_eq!(slow_patterns(&script("x = string.match(y, '[^a]*$')")).len(), 1);
    assert!(slow_patterns(&script("x = string.match(y, '^.*b(.*)$'), match(z, ',c$')")).is_empty());

    assert!(is_on_page("- `claim`: takes", "claim") && !is_on_page("we claim", "claim"));
    assert!(is_in_table("\"claim\": []", "claim") && !is_in_table("reclaim.lua", "claim"));
}
