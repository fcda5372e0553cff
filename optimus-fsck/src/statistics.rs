//! Checks the rows of statistics, and the list of processes.

use super::view::View;
use crate::violation::Wrong;

/// The lists of finished rows, and how many rows each keeps.
const KEPT: [(&str, usize); 3] = [("minutes", 120), ("hours", 336), ("days", 180)];
/// The open rows.
const OPEN: [&str; 3] = ["minute", "hour", "day"];
/// 64 tasks, and all others together.
const TASKS_MAX: usize = 65;
const COUNTS: usize = 8;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    for (name, kept) in KEPT {
        let rows = view.items(name);
        if rows.len() > kept {
            wrong.add(name, format!("`{name}` has more than {kept} rows"));
        }
        for row in rows.iter().filter(|row| !is_row(row)) {
            wrong.add(name, format!("`{name}` has the row {row:?}"));
        }
    }
    for (field, row) in view.pairs("tally") {
        if !OPEN.contains(&field.as_str()) || !is_row(&row) {
            wrong.add("tally", format!("the open row {field:?} cannot be read"));
        }
    }
    let fleet = view.pairs("fleet");
    for process in view.owners("process:").filter(|process| !fleet.contains_key(*process)) {
        wrong.add("fleet", format!("the process {process} is not in `fleet`"));
    }
    check_operations(view, wrong);
}

/// Operations that are under way are carried on, and each is listed.
fn check_operations(view: &View<'_>, wrong: &mut Wrong) {
    let (listed, carried) = (view.pairs("operations"), view.pairs("carried"));
    for id in view.owners("operation:").filter(|id| !listed.contains_key(*id)) {
        wrong.add("operations", format!("the operation {id} is not in `operations`"));
    }
    for id in listed.keys() {
        let fields = view.pairs(&format!("operation:{id}"));
        let state = fields.get("state").map_or("", String::as_str);
        let is_carried = carried.contains_key(id);
        let is_right = match state {
            "counting" | "running" => is_carried,
            // Its carrier has not stopped yet: tasks that are back may have to ask.
            "cancelled" | "failed" => true,
            "counted" | "done" => !is_carried,
            _ => false,
        };
        if !is_right {
            wrong.add(
                "operations",
                format!("the operation {id} is {state:?}, and carried is {is_carried}"),
            );
        }
    }
    for id in view.owners("counted:").filter(|id| !listed.contains_key(*id)) {
        wrong.add("operations", format!("tasks are counted for {id}, and it is no operation"));
    }
    for id in carried.keys().filter(|id| !listed.contains_key(*id)) {
        wrong.add("carried", format!("{id} is carried on, and no operation"));
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
