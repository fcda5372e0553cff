//! The lines of a worker whose roles do not run.

use optimus_core::{AttemptFacts, Client, Context, Data, LogSeat, Task, TaskId, TaskLog};

use super::*;
use crate::test_worker::{Nothing, idle_worker};

/// Submits a task, and returns the context of its first attempt.
async fn attempt(client: &Client, shared: &Shared) -> Context {
    let handle = client.submit(Nothing {}.call()).await.unwrap();
    context(shared, handle.id().clone(), 1)
}

fn context(shared: &Shared, id: TaskId, fence: u64) -> Context {
    let now = Instant::now();
    let facts = AttemptFacts { fence, ..AttemptFacts::first(id, (now + EVERY).into_std()) };
    let seat = LogSeat { desk: shared.log_desk.clone(), began: now, began_ms: 1_000 };
    let worker = (shared.threads.clone(), shared.client.clone(), seat);
    Context::build(facts, Arc::new(Data::new()), Some(worker))
}

async fn log_of(client: &Client, ctx: &Context) -> TaskLog {
    client.inspector().get(ctx.id()).await.unwrap().expect("it is stored").log
}

fn texts(log: &TaskLog) -> Vec<&str> {
    log.lines.iter().map(|line| &*line.text).collect()
}

#[tokio::test]
async fn the_first_line_is_sent_at_once_and_the_next_ones_together_a_second_later() {
    let (client, shared) = idle_worker("log-writer-turns").await;
    let mut writer = LogWriter::new(shared.clone());
    assert_eq!(writer.tick().await, ASLEEP);
    let ctx = attempt(&client, &shared).await;
    ctx.log("one");
    assert_eq!(writer.tick().await, EVERY);
    assert_eq!(texts(&log_of(&client, &ctx).await), ["one"]);
    ctx.log("two");
    ctx.log("three");
    assert!(writer.tick().await <= EVERY);
    assert_eq!(texts(&log_of(&client, &ctx).await), ["one"], "the turn has not come");
    writer.leave().await;
    assert_eq!(texts(&log_of(&client, &ctx).await), ["one", "two", "three"]);
}

#[tokio::test]
async fn lines_of_many_attempts_are_sent_in_few_calls_that_are_not_large() {
    let (client, shared) = idle_worker("log-writer-many").await;
    let mut all = Vec::new();
    for _ in 0..150 {
        let ctx = attempt(&client, &shared).await;
        (0..300).for_each(|number| ctx.log(format!("{number} {}", "x".repeat(200))));
        all.push(ctx);
    }
    let turn = batches(&shared.log_desk);
    let bytes = |batch: &Batch| batch.said.iter().map(|said| said.text.len()).sum::<usize>();
    assert!(turn.iter().all(|(_, batch)| bytes(batch) < CALL_BYTES_MAX + 10_000));
    let sent: usize = turn.iter().map(|(_, batch)| bytes(batch)).sum();
    assert!((TURN_BYTES_MAX..TURN_BYTES_MAX + 10_000).contains(&sent), "{sent}");
    assert!(!shared.log_desk.is_empty(), "the others wait for the next turn");
    for (queue, batch) in turn {
        let lost = Err(BrokerError::Unknown("Redis did not answer".into()));
        LogWriter::new(shared.clone()).take_in(&queue, &batch, lost);
    }
    LogWriter::new(shared.clone()).leave().await;
    for ctx in all {
        let log = log_of(&client, &ctx).await;
        let last = log.lines.last().expect("its last lines are kept");
        assert!(last.text.starts_with("299 "), "{}", last.text);
        assert_eq!(log.lines.len() as u64 + log.dropped, 300);
    }
}

#[tokio::test]
async fn an_attempt_that_was_replaced_says_nothing_more() {
    let (client, shared) = idle_worker("log-writer-fence").await;
    let first = attempt(&client, &shared).await;
    let writer = LogWriter::new(shared.clone());
    let second = context(&shared, first.id().clone(), 9);
    for (ctx, text) in [(&first, "a"), (&second, "b"), (&first, "c"), (&second, "d")] {
        ctx.log(text);
        assert!(writer.send().await);
    }
    let log = log_of(&client, &first).await;
    assert_eq!((texts(&log), log.dropped), (vec!["a", "b", "d"], 0));
}
