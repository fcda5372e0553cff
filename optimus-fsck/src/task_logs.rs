//! Checks the logs of tasks.

use super::view::View;
use crate::violation::Wrong;

const LINES_MAX: usize = 100;
const BYTES_MAX: usize = 8_192;
const LOGS_MAX: usize = 8_192;

pub(super) fn check(view: &View<'_>, wrong: &mut Wrong) {
    let (logs, logged) = (view.pairs("logs"), view.pairs("logged"));
    if logs.len() > LOGS_MAX {
        wrong.add("logs", format!("there are more than {LOGS_MAX} logs"));
    }
    for (id, log) in &logs {
        if id.len() != 22 {
            wrong.add("logs", format!("there is a log of {id:?}"));
        }
        if !logged.contains_key(id) {
            wrong.of_task("logged", format!("{id} has a log and is not in `logged`"));
        }
        if !is_sound(log) {
            wrong.of_task("logs", format!("the log of {id} cannot be read"));
        }
    }
    for id in logged.keys().filter(|id| !logs.contains_key(*id)) {
        wrong.of_task("logged", format!("{id} is in `logged` and has no lines"));
    }
}

/// Returns whether a log states how many lines were said and are kept, and each one when and in
/// which attempt.
fn is_sound(log: &str) -> bool {
    let Some((head, lines)) = log.split_once('\n') else { return false };
    let numbers: Vec<usize> = head.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [said, kept, _, last] = numbers[..] else { return false };
    let count = lines.split_terminator('\n').count();
    let are_lines = lines.split_terminator('\n').all(|line| {
        let mut words = line.splitn(3, ' ');
        let is_number = |word: Option<&str>| word.is_some_and(|w| w.parse::<u64>().is_ok());
        is_number(words.next()) && is_number(words.next()) && words.next().is_some()
    });
    let is_small = kept <= LINES_MAX && (lines.len() <= BYTES_MAX || kept == 1);
    are_lines && count == kept && kept <= said && last <= said && is_small && lines.ends_with('\n')
}
