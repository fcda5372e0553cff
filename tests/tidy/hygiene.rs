//! Rules about text that a file must not contain.

use crate::files::File;
use crate::functions::functions;
use crate::{Finding, hold};

fn unwraps(file: &File) -> Vec<Finding> {
    let library = file.is_rust() && file.path.contains("/src/") && !file.is_test();
    let lines = file.code.iter().enumerate().filter(|_| library);
    lines
        .filter(|(_, line)| !line.test && line.code.contains(".unwrap()"))
        .map(|(index, line)| file.at(index, line.code.trim()))
        .collect()
}

/// Finds parameters of the type `bool`. The tests of the packages of users may have them.
fn bool_parameters(file: &File) -> Vec<Finding> {
    let is_package =
        file.path.starts_with("optimus") || file.path.starts_with("tests/transitions/");
    let is_test = !file.path.contains("/src/") || file.is_test();
    if !file.is_rust() || (is_package && is_test) {
        return Vec::new();
    }
    let starts = functions(file).into_iter().filter(|function| !file.code[function.first].test);
    starts
        .filter_map(|function| {
            let lines = file.code[function.first..].iter().map(|line| line.code.trim());
            let code: String = lines.take(function.lines).collect();
            let signature = code.split('{').next().unwrap_or_default();
            let parameters = signature.split("->").next().unwrap_or_default();
            // The name and the parameter of `From::from` are fixed.
            let is_found = parameters.contains(": bool") && function.name != "from";
            is_found.then(|| file.at(function.first, function.name))
        })
        .collect()
}

fn unreasoned_allowances(file: &File) -> Vec<Finding> {
    let starts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("];
    let lines = file.code.iter().enumerate().filter(|_| file.is_rust());
    lines
        .filter(|(_, line)| starts.iter().any(|start| line.code.contains(start)))
        .filter(|(index, _)| {
            let rest = &file.code[*index..];
            let end = rest.iter().position(|line| line.code.contains(")]")).unwrap_or(0);
            !rest[..=end].iter().any(|line| line.code.contains("reason = \""))
        })
        .map(|(index, line)| file.at(index, line.code.trim()))
        .collect()
}

fn postponed(file: &File) -> Vec<Finding> {
    // The pattern is split, so that this file is not a finding.
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
    let lines = file.text.lines().enumerate().filter(|_| file.is_rust() || file.is_lua());
    lines
        .filter(|(_, line)| marks.iter().any(|mark| has_word(line, mark)))
        .map(|(index, line)| file.at(index, line.trim()))
        .collect()
}

fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

fn machine_paths(file: &File) -> Vec<Finding> {
    let folders = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
    let lines = file.text.lines().enumerate();
    lines
        .filter(|(_, line)| folders.iter().any(|folder| is_absolute_in(line, folder)))
        .map(|(index, line)| file.at(index, line.trim()))
        .collect()
}

/// Returns whether a path begins with the folder, and does not only contain it.
fn is_absolute_in(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !(c.is_alphanumeric() || "._-~}*".contains(c)))
    })
}

#[test]
fn nothing_is_unwrapped_outside_tests() {
    hold("return a typed error, or use expect(\"why it holds\")", unwraps);
}

#[test]
fn no_parameter_is_a_bool() {
    hold("use an enum, or two functions", bool_parameters);
}

#[test]
fn every_allowance_has_its_reason() {
    hold("add `reason = \"…\"` to the attribute, or follow the lint", unreasoned_allowances);
}

#[test]
fn nothing_is_left_for_later() {
    hold("do the work now, or remove the mark and open an issue", postponed);
}

#[test]
fn no_path_of_one_machine_is_named() {
    hold("use a relative path, an environment variable or a temporary folder", machine_paths);
}

#[test]
fn forbidden_text_is_found() {
    let library = |text: &str| File::new("a/src/b.rs", text);
    let text = "x.unwrap();\n/// y.unwrap()\n#[cfg(test)]\nmod tests { fn t() { z.unwrap(); } }";
    assert_eq!(unwraps(&library(text)), ["a/src/b.rs:1: x.unwrap();"]);
    assert!(unwraps(&File::new("a/tests/b.rs", text)).is_empty());

    let bools = |path: &str, text: &str| bool_parameters(&File::new(path, text));
    let text = "fn one(\n    is: bool,\n) -> u8 { 1 }\nfn two(f: fn(bool)) -> bool { f(true) }";
    assert_eq!(bools("optimus/src/a.rs", text), ["optimus/src/a.rs:1: one"]);
    assert!(bools("optimus/tests/a.rs", text).is_empty());

    let found = |text: &str| unreasoned_allowances(&library(text)).len();
    assert_eq!(found("#[allow(dead_code)]\nfn f() {}"), 1);
    assert_eq!(found("#![expect(\n  dead_code,\n)]\n// reason = \"no\""), 1);
    assert_eq!(found("#[expect(\n  dead_code,\n  reason = \"used by the macro\"\n)]"), 0);

    let mark = concat!("// TO", "DO: finish");
    assert_eq!(postponed(&library(mark)).len(), 1);
    assert!(postponed(&library(&mark.replace(' ', "_"))).is_empty());

    let path = concat!("cd /ho", "me/someone");
    assert_eq!(machine_paths(&File::new("README.md", path)).len(), 1);
    assert!(machine_paths(&File::new("README.md", &path.replace(" /", " ../"))).is_empty());
}
