//! Checks the rows of statistics, and the list of processes.

use super::view::View;

/// The lists of finished rows, and how many rows each keeps.
const KEPT: [(&str, usize); 3] = [("minutes", 120), ("hours", 336), ("days", 180)];
/// The open rows.
const OPEN: [&str; 3] = ["minute", "hour", "day"];
/// 64 tasks, and all others together.
const TASKS_MAX: usize = 65;
const COUNTS: usize = 8;

pub(super) fn check(view: &View<'_>, wrong: &mut Vec<String>) {
    for (name, kept) in KEPT {
        let rows = view.items(name);
        if rows.len() > kept {
            wrong.push(format!("`{name}` has {} rows", rows.len()));
        }
        for row in rows.iter().filter(|row| !is_row(row)) {
            wrong.push(format!("`{name}` has the row {row:?}"));
        }
    }
    for (field, row) in view.pairs("tally") {
        if !OPEN.contains(&field.as_str()) || !is_row(&row) {
            wrong.push(format!("the open {field} is {row:?}"));
        }
    }
    let fleet = view.pairs("fleet");
    for process in view.owners("process:").filter(|process| !fleet.contains_key(*process)) {
        wrong.push(format!("the process {process} is not in `fleet`"));
    }
}

fn is_row(row: &str) -> bool {
    let mut lines = row.split('\n');
    let has_number = lines.next().is_some_and(|number| number.parse::<u64>().is_ok());
    let lines: Vec<&str> = lines.collect();
    has_number && lines.len() <= TASKS_MAX && lines.iter().all(|line| is_line(line))
}

fn is_line(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let [task, counts, runs, waits] = words[..] else { return false };
    let numbers = |text: &str| text.split(',').all(|number| number.parse::<u64>().is_ok());
    let is_histogram = |text: &str| {
        let parts = text.split_once(':');
        text == "-"
            || parts.is_some_and(|(first, rest)| {
                first.parse::<u8>().is_ok_and(|first| first <= 80) && numbers(rest)
            })
    };
    !task.is_empty()
        && counts.split(',').count() == COUNTS
        && numbers(counts)
        && is_histogram(runs)
        && is_histogram(waits)
}
