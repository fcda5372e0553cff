//! Compares `lua/README.md` with the headers of the scripts.

use std::collections::BTreeSet;

use optimus_core::broker::Refusal;

use crate::{
    situations::{SITUATIONS, text_of},
    wrong_type::named_keys,
};

const PAGE: &str = include_str!("../../../../lua/README.md");

/// Returns the rows below a table's header, as cells.
fn rows(head: &str) -> Vec<Vec<&'static str>> {
    let table = PAGE.split(head).nth(1).unwrap_or_else(|| panic!("no table {head:?}"));
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect()).collect()
}

/// Returns the words of refusals in a text.
fn refusals(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    words.filter(|word| Refusal::from_word(word).is_some()).collect()
}

#[test]
fn each_script_has_its_row_with_its_refusals() {
    let rows = rows("| script | from → to | arguments | reply after `OK` | refuses |");
    let names: Vec<String> = rows.iter().map(|row| row[0].replace('`', "")).collect();
    assert_eq!(names, SITUATIONS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (row, (name, _)) in rows.iter().zip(SITUATIONS) {
        assert_eq!(row.len(), 5, "{name}");
        let text = text_of(name);
        let header = text.split("\n\n").next().expect("a header");
        let refused = header.split("REFUSE").nth(1).unwrap_or_default();
        assert_eq!(refusals(row[4]), refusals(refused), "{name}");
    }
}

#[test]
fn each_script_has_its_keys_in_their_order() {
    let rows = rows("| script | keys |");
    assert_eq!(rows.len(), SITUATIONS.len());
    for (row, (name, _)) in rows.iter().zip(SITUATIONS) {
        assert_eq!(row[0], format!("`{name}`"));
        let keys = row[1].split(", then").next().unwrap_or_default();
        let expected: Vec<String> = named_keys(&text_of(name))
            .iter()
            .map(|key| match key.as_str() {
                "worker_info" => "worker:".into(),
                "wakeup" => "wake:".into(),
                owned @ ("working" | "ledger" | "requeued" | "interrupt" | "outbox" | "group"
                | "schedule" | "ticks" | "bucket" | "process" | "operation"
                | "operated" | "counted") => format!("{owned}:"),
                other => other.to_owned(),
            })
            .collect();
        assert_eq!(keys, expected.join(" "), "{name}");
    }
}

#[test]
fn the_list_of_refusals_is_that_of_the_broker() {
    let rows = rows("| word | meaning | words after it |");
    let words: Vec<String> = rows.iter().map(|row| row[0].replace('`', "")).collect();
    assert_eq!(words, Refusal::ALL.map(|(_, word)| word));
}

#[test]
fn each_include_is_on_the_page() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lua/include");
    let files = std::fs::read_dir(folder).expect("the includes are in this package");
    let mut expected: Vec<String> = files
        .map(|file| file.expect("a readable folder").path())
        .filter_map(|path| Some(format!("`{}`", path.file_stem()?.to_str()?)))
        .collect();
    expected.sort();
    let mut named: Vec<&str> = rows("| include | contents |").iter().map(|row| row[0]).collect();
    named.sort_unstable();
    assert_eq!(named, expected);
}
