//! Tests of the rows of a page.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::*;
use crate::{BoxError, Context, Page, Tier};

#[derive(Serialize, Deserialize)]
struct Charge {
    order: i64,
}

impl Task for Charge {
    const NAME: &'static str = "charge";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn charge(order: i64) -> Call<Charge> {
    Charge { order }.call()
}

/// A page of three rows after a key, for rows with 1 to 5 failures of 8.
fn facts(after: Option<&str>) -> PageFacts {
    PageFacts {
        shard: crate::Shard::local(0, 1),
        table: Some("orders_3".to_owned()),
        slice: (0, 1),
        tier: Tier { least: 1, most: 5, every: Duration::from_secs(1) },
        after: after.map(str::to_owned),
        unread: OnceLock::new(),
        limit: 3,
        stamp: Stamp {
            source: "unpaid",
            has_hooks: true,
            keeps_failures: true,
            remember: Duration::from_secs(60),
            attempts: Some(8),
        },
    }
}

fn row<K>(key: K, failures: u32, order: i64) -> Found<K> {
    Found::new(key).failures(failures).task(charge(order))
}

fn only(found: Found<i64>) -> RowTask {
    found_rows(vec![found], &facts(None)).unwrap().rows.pop().unwrap().task
}

fn submitted(task: RowTask) -> Submission {
    match task {
        RowTask::Submit(submission) => *submission,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_task_has_a_biz_id_of_its_source_table_and_key_and_leaves_retries_to_the_table() {
    let task = submitted(only(row(7, 2, 7)));
    assert_eq!(task.biz_id.as_deref(), Some("unpaid/orders_3/7"));
    assert_eq!(task.options.biz_window, Some(Duration::from_secs(60)));
    assert_eq!(task.options.max_retry, 0);
    assert_eq!(task.options.timeout, Charge::options().timeout + NOTE_WITHIN);
    assert_eq!(task.header("optimus-source"), Some("unpaid"));
    assert_eq!(task.header("optimus-row"), Some(r#"{"t":"orders_3","k":"7","f":2,"n":true}"#));
    let page = found_rows(vec![row("a \"b\"".to_owned(), 1, 7)], &facts(None)).unwrap();
    let task = submitted(page.rows.into_iter().next().unwrap().task);
    assert_eq!(task.biz_id.as_deref(), Some("unpaid/orders_3/a \"b\""));
}

#[test]
fn a_biz_id_and_a_window_of_the_call_stay() {
    let window = Duration::from_secs(5);
    let call = charge(7).biz_id("order 7").biz_window(window);
    let task = submitted(only(Found::new(7).failures(1).task(call)));
    assert_eq!(task.biz_id.as_deref(), Some("order 7"));
    assert_eq!(task.options.biz_window, Some(window));
}

#[test]
fn rows_of_another_tier_and_rows_that_are_given_up_get_no_task() {
    for (failures, expected) in [(0, "OtherTier"), (6, "OtherTier"), (8, "GivenUp"), (9, "GivenUp")]
    {
        assert_eq!(format!("{:?}", only(row(7, failures, 7))), expected);
    }
    assert!(matches!(only(Found::new(7).failures(1)), RowTask::None));
    let wrong = Found::new(7).failures(1).task(charge(7).priority(101));
    assert!(matches!(only(wrong), RowTask::Refused(problem) if problem.is_invalid()));
}

#[test]
fn a_page_that_is_too_long_or_does_not_go_on_is_refused() {
    let page = |keys: &[i64], after| {
        found_rows(keys.iter().map(|key| row(*key, 1, *key)).collect(), &facts(after))
    };
    let sound = page(&[1, 2, 3], None).unwrap();
    assert_eq!((sound.rows.len(), sound.last.as_deref()), (3, Some("3")));
    let problem = page(&[1, 2, 3, 4], None).unwrap_err().to_string();
    assert!(problem.contains("4 rows") && problem.contains("page.limit()"), "{problem}");
    let problem = page(&[1, 2, 3], Some("3")).unwrap_err().to_string();
    assert!(problem.contains("page.after()"), "{problem}");
}

#[test]
fn a_page_reads_the_key_of_the_page_before() {
    let page = Page::<i64>::of(Arc::new(facts(Some("17"))));
    assert_eq!((page.after(), page.limit(), page.failures()), (Some(&17), 3, 1..=5));
    assert_eq!((page.table(), page.slice(), page.slices()), ("orders_3", 0, 1));
    let page = Page::local(Some("a".to_owned()), 2);
    assert_eq!((page.after(), page.limit()), (Some(&"a".to_owned()), 2));
}

#[test]
fn a_page_whose_stored_key_is_of_another_type_is_the_first_of_a_pass() {
    let stored = Arc::new(facts(Some("17")));
    assert_eq!(Page::<String>::of(stored.clone()).after(), None);
    assert!(stored.unread.get().unwrap().contains("invalid type"), "{stored:?}");
    let stored = Arc::new(facts(Some("17")));
    assert!(Page::<Odd>::of(stored.clone()).after().is_none());
    assert!(stored.unread.get().unwrap().contains("no odd key"), "{stored:?}");
    let readable = Arc::new(facts(Some("17")));
    assert_eq!(Page::<i64>::of(readable.clone()).after(), Some(&17));
    assert!(readable.unread.get().is_none());
}

/// A key or arguments with an encoder that panics; a key that can't be read again.
#[derive(Clone, Copy)]
enum Odd {
    Panics,
    Fails,
    Unreadable,
}

impl Serialize for Odd {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Panics => panic!("no odd text"),
            Self::Fails => Err(serde::ser::Error::custom("no text")),
            Self::Unreadable => to.serialize_i64(7),
        }
    }
}

impl<'de> Deserialize<'de> for Odd {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("no odd key")
    }
}

#[derive(Serialize, Deserialize)]
struct Odder(Odd);

impl Task for Odder {
    const NAME: &'static str = "odder";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Returns which rows are refused, and the key after which the next page begins.
fn refused<K: Serialize + serde::de::DeserializeOwned>(
    rows: Vec<Found<K>>,
) -> (Vec<bool>, Option<String>) {
    let page = found_rows(rows, &facts(None)).unwrap();
    let refused = page.rows.iter().map(|row| match &row.task {
        RowTask::Refused(problem) => problem.is_invalid(),
        _ => false,
    });
    (refused.collect(), page.last)
}

#[test]
fn a_row_that_can_not_be_submitted_is_refused_alone_and_the_pass_goes_on_behind_it() {
    let long = "x".repeat(KEY_BYTES_MAX - 1);
    let rows = |last: &str| vec![row("a".to_owned(), 1, 1), row(last.to_owned(), 1, 2)];
    let key = Some(format!("\"{long}\""));
    assert_eq!(refused(rows(&long)), (vec![false, true], key));
    let call = |odd| Found::new(3).failures(1).task(Odder(odd).call());
    let rows = vec![row(2, 1, 2), call(Odd::Panics), row(4, 1, 4)];
    assert_eq!(refused(rows), (vec![false, true, false], Some("4".to_owned())));
    assert_eq!(refused(vec![call(Odd::Fails)]), (vec![true], Some("3".to_owned())));
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Key {
    Sound(i64),
    #[serde(skip_deserializing)]
    Odd(Odd),
}

#[test]
fn a_key_that_can_not_be_written_or_read_is_no_place_to_go_on_from() {
    let rows = [Odd::Panics, Odd::Fails, Odd::Unreadable].map(|key| row(key, 1, 1));
    assert_eq!(refused(rows.into()), (vec![true, true, false], None));
    let rows = vec![row(Key::Sound(5), 1, 1), row(Key::Odd(Odd::Fails), 1, 1)];
    assert_eq!(refused(rows), (vec![false, true], Some("5".to_owned())));
}

#[test]
fn no_two_rows_of_a_source_have_one_biz_id() {
    let name = |table: &str, key: &str| {
        let mut facts = facts(None);
        facts.table = Some(table.to_owned());
        let page = found_rows(vec![row(key.to_owned(), 1, 1)], &facts).unwrap();
        submitted(page.rows.into_iter().next().unwrap().task).biz_id.clone().unwrap()
    };
    assert_eq!(name("eu", "old/7"), "unpaid/eu/old/7");
    assert_eq!(name("eu/old", "7"), "unpaid/eu%2Fold/7");
    assert_eq!(name("eu%2Fold", "7"), "unpaid/eu%252Fold/7");
    assert_eq!(name("eu", "50 %"), "unpaid/eu/50 %", "a plain table leaves the key as it is");
}
