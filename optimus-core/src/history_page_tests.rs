//! The lines and the cursors of a history.

use super::*;
use crate::state::Reason;

fn queue() -> QueueName {
    QueueName::new("mail.v2").unwrap()
}

fn day() -> NaiveDate {
    "2023-11-14".parse().unwrap()
}

fn stored_id() -> String {
    TaskId::new(queue()).stored()
}

#[test]
fn a_line_of_a_success_has_its_worker_and_how_long_it_took() {
    let line = format!("{} 1700000000000 send_mail 2 41 vm-1-17-0a0b0c0d", stored_id());
    let read = |line: &str| HistoryRow::read(&queue(), TaskState::Success, line);
    let row = read(&line).unwrap();
    assert_eq!((row.task.as_str(), row.attempt, row.took.as_millis()), ("send_mail", 2, 41));
    assert_eq!(row.worker, Some(WorkerId::from_stored("vm-1-17-0a0b0c0d")));
    assert!(row.error.is_none() && row.state == TaskState::Success);
    for strange in ["", "x", "a b c d e f", &line[..48], &line.replace(" 2 ", " two ")] {
        assert!(read(strange).is_none(), "{strange}");
    }
}

#[test]
fn a_line_of_a_death_has_its_error() {
    let error = r#"{"reason":"timed_out","message":"still running","attempt":3,"worker":"vm-1"}"#;
    let line = format!("{} 1700000000000 send_mail 30000 ", stored_id());
    let read =
        |error: &str| HistoryRow::read(&queue(), TaskState::Dead, &(line.clone() + error)).unwrap();
    let row = read(error);
    assert_eq!((row.attempt, row.took.as_secs()), (3, 30));
    assert_eq!(row.worker, Some(WorkerId::from_stored("vm-1")));
    let known = row.error.unwrap();
    assert_eq!((known.reason, known.at), (Reason::TimedOut, row.ended));
    for unknown in ["", "{}", "what"] {
        let row = read(unknown);
        assert!(row.error.is_none() && row.worker.is_none() && row.attempt == 0);
    }
}

#[test]
fn a_cursor_is_read_from_its_text_and_others_are_refused() {
    let filter = HistoryFilter::day(day());
    let after = Some((stored_id(), 1_700_000_000_000));
    for place in
        [Place::first(TaskState::Dead), Place { state: TaskState::Success, entry: 17, after }]
    {
        let cursor = HistoryCursor::of(&queue(), &filter, place.clone());
        let text = cursor.to_string();
        assert!(text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c)), "{text}");
        assert_eq!(text.parse::<HistoryCursor>().unwrap(), cursor);
        assert_eq!(cursor.place_in(&queue(), &filter).unwrap(), place);
        let other = QueueName::new("other").unwrap();
        assert!(cursor.place_in(&other, &filter).unwrap_err().is_invalid());
        let tomorrow = HistoryFilter::day(day().succ_opt().unwrap());
        assert!(cursor.place_in(&queue(), &tomorrow).unwrap_err().is_invalid());
    }
    let dead = HistoryCursor::of(&queue(), &filter, Place::first(TaskState::Dead));
    let successes = filter.state(TaskState::Success);
    assert!(dead.place_in(&queue(), &successes).unwrap_err().is_invalid());
    for text in [
        "",
        "mail",
        "mail~2023-11-14~dead",
        "mail~2023-11-14~retry~5",
        "mail~2023-11-99~dead~5",
        "mail~2023-11-14~dead~5~x~5",
        &format!("mail~2023-11-14~dead~5~{}", stored_id()),
        &format!("mail~2023-11-14~dead~5~{}~5~6", stored_id()),
    ] {
        assert!(text.parse::<HistoryCursor>().unwrap_err().is_invalid(), "{text}");
    }
}

#[test]
fn a_history_has_successes_and_deaths_only() {
    assert_eq!(HistoryFilter::day(day()).states().unwrap().len(), 2);
    let problem = HistoryFilter::day(day()).state(TaskState::Retry).states().unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("retry"), "{problem}");
}
