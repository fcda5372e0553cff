//! Tests of the rows of a page.

use std::{sync::Arc, time::Duration};

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
    found_rows(vec![found], &facts(None)).unwrap().pop().unwrap().task
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
    let rows = found_rows(vec![row("a \"b\"", 1, 7)], &facts(None)).unwrap();
    let task = submitted(rows.into_iter().next().unwrap().task);
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
    assert_eq!(page(&[1, 2, 3], None).unwrap().len(), 3);
    let problem = page(&[1, 2, 3, 4], None).unwrap_err().to_string();
    assert!(problem.contains("4 rows") && problem.contains("page.limit()"), "{problem}");
    let problem = page(&[1, 2, 3], Some("3")).unwrap_err().to_string();
    assert!(problem.contains("page.after()"), "{problem}");
    let long = vec![row("x".repeat(KEY_BYTES_MAX), 1, 1)];
    assert!(found_rows(long, &facts(None)).unwrap_err().is_invalid());
}

#[test]
fn a_page_reads_the_key_of_the_page_before() {
    let page = Page::<i64>::of(Arc::new(facts(Some("17")))).unwrap();
    assert_eq!((page.after(), page.limit(), page.failures()), (Some(&17), 3, 1..=5));
    assert_eq!((page.table(), page.slice(), page.slices()), ("orders_3", 0, 1));
    assert!(Page::<String>::of(Arc::new(facts(Some("17")))).is_err());
    let page = Page::local(Some("a".to_owned()), 2);
    assert_eq!((page.after(), page.limit()), (Some(&"a".to_owned()), 2));
}
