//! Rules for the documents: each page is in the book, its code is run, and its links are valid.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::files::{File, repository, root};
use crate::{Finding, hold, none};

const SUMMARY: &str = "docs/SUMMARY.md";
/// The file that turns the code of pages into doctests.
const DOCTESTS: &str = "examples/lib.rs";

/// Returns the lines outside of code blocks, by their index, without code in backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut in_code = false;
    let mut prose = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            prose.push((index, line.split('`').step_by(2).collect()));
        }
    }
    prose
}

/// Returns the targets of a page's links, with their lines.
fn links(text: &str) -> Vec<(usize, String)> {
    let of = |(index, line): (usize, String)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        targets.map(|target| (index, target.to_owned())).collect::<Vec<_>>()
    };
    prose(text).into_iter().flat_map(of).collect()
}

/// Returns the anchors after `#` that link to the headings of a page.
fn anchors(text: &str) -> HashSet<String> {
    let mut in_code = false;
    let heading = |line: &&str| {
        in_code ^= line.trim_start().starts_with("```");
        !in_code && line.starts_with('#')
    };
    let anchor = |line: &str| {
        let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
        let text: String = line.trim_start_matches('#').trim().chars().filter(kept).collect();
        text.to_lowercase().replace(' ', "-")
    };
    text.lines().filter(heading).map(anchor).collect()
}

fn is_page(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}

fn broken_links(file: &File) -> Vec<Finding> {
    if !is_page(&file.path) {
        return Vec::new();
    }
    let folder = root().join(&file.path).parent().expect("a file is in a folder").to_owned();
    let is_broken = |target: &str| {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let place = folder.join(path);
        let text = if path.is_empty() { Some(file.text.clone()) } else { read(&place) };
        let leads = path.is_empty() || place.exists();
        let names = text.is_some_and(|text| anchors(&text).contains(anchor));
        !leads || !anchor.is_empty() && !names
    };
    links(&file.text)
        .into_iter()
        .filter(|(_, target)| !target.contains("://") && is_broken(target))
        .map(|(index, target)| file.at(index, target))
        .collect()
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Returns the pages that the list of the book omits or names twice.
fn unlisted(summary: &File, pages: &[&str]) -> Vec<Finding> {
    let listed: Vec<String> = links(&summary.text).into_iter().map(|(_, page)| page).collect();
    let times = |page: &str| listed.iter().filter(|listed| *listed == page).count();
    let odd = pages.iter().filter(|page| times(page) != 1);
    odd.map(|page| format!("docs/{page}: is in {SUMMARY} {} times", times(page))).collect()
}

/// Returns the pages with Rust that no doctest compiles.
fn untested(doctests: &File, page: &File) -> Vec<Finding> {
    let has_rust = is_page(&page.path) && page.text.contains("```rust");
    let is_run = doctests.text.contains(&format!("\"../{}\"", page.path));
    (has_rust && !is_run)
        .then(|| page.at(0, format!("its code is not in {DOCTESTS}")))
        .into_iter()
        .collect()
}

fn file(path: &str) -> &'static File {
    let found = repository().iter().find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("there is no {path}"))
}

#[test]
fn every_link_of_a_document_is_valid() {
    hold("correct the path, or the heading after #", broken_links);
}

#[test]
fn every_page_is_in_the_book() {
    let pages = repository().iter().filter_map(|file| file.path.strip_prefix("docs/"));
    let pages: Vec<&str> = pages.filter(|page| is_page(page) && *page != "SUMMARY.md").collect();
    none("list it once in docs/SUMMARY.md", unlisted(file(SUMMARY), &pages));
}

#[test]
fn the_code_of_every_page_is_run() {
    let doctests = file(DOCTESTS);
    let of_users = |page: &File| page.path == "README.md" || page.path.starts_with("docs/");
    hold("include it in examples/lib.rs, as the others are", |page| {
        if of_users(page) { untested(doctests, page) } else { Vec::new() }
    });
}

#[test]
fn a_page_that_breaks_a_rule_is_found() {
    let page = |text: &str| File::new("docs/page.md", text);
    let good = "# A page: of `code`\n[a](#a-page-of-code) [b](../README.md) [c](https://x.y/#z)\n\
                ```rust\n# not_a_heading [d](nowhere)\n```\n`[e](nowhere)`";
    assert_eq!(broken_links(&page(good)), Vec::<String>::new());
    let bad = "[a](#b)\n[b](nowhere.md) [c](../README.md#nowhere)";
    let found = broken_links(&page(bad));
    let expected = ["1: #b", "2: nowhere.md", "2: ../README.md#nowhere"];
    assert_eq!(found, expected.map(|finding| format!("docs/page.md:{finding}")));

    let summary = File::new(SUMMARY, "- [A](a.md)\n- [B](b.md)\n- [B](b.md)");
    assert_eq!(unlisted(&summary, &["a.md"]).len(), 0);
    assert_eq!(unlisted(&summary, &["a.md", "b.md", "c.md"]).len(), 2);

    let doctests = File::new(DOCTESTS, "include_str!(\"../docs/other.md\")");
    assert_eq!(untested(&doctests, &page("```rust,no_run\n```")).len(), 1);
    assert!(untested(&doctests, &page("```sh\n```")).is_empty());
    assert!(untested(&doctests, &File::new("docs/other.md", "```rust\n```")).is_empty());
}
