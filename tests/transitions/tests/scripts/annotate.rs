//! `annotate`: the lines that attempts say, and when they are removed.

use std::time::Duration;

use optimus_core::{
    TaskId,
    broker::{FailureOutcome, SaidLines},
};

use crate::{
    acts::{done, failed, keep, ms},
    bench::{Bench, START},
    jobs::job,
};

const DAY: u64 = 86_400_000;
const LONG: Duration = Duration::from_secs(10_000_000);

/// Returns the last `count` lines of an attempt that has said `last`, each with its number.
fn lines(id: &TaskId, fence: u64, last: u64, count: u64) -> SaidLines {
    let texts = (last + 1 - count..=last).map(|number| format!("{START} 1 {fence}.{number}"));
    let text = texts.collect::<Vec<_>>().join("\n");
    SaidLines { id: id.clone(), fence, last, count: usize::try_from(count).unwrap(), text }
}

async fn say(bench: &Bench, at: u64, said: &[SaidLines]) {
    bench.at(at).annotate(&bench.queue, said).await.unwrap();
}

/// Returns the texts of the log of a task, and its first line as stored.
async fn log(bench: &Bench, id: &TaskId) -> (String, Vec<String>) {
    let stored = bench.now().inspect(id).await.unwrap().log;
    let mut parts = stored.lines();
    let head = parts.next().unwrap_or_default().to_owned();
    let text = |line: &str| line.splitn(3, ' ').nth(2).unwrap().to_owned();
    (head, parts.map(text).collect())
}

async fn assert_sound(bench: &Bench) {
    assert_eq!(bench.fsck_of_tasks().await, [""; 0]);
}

async fn lines_that_are_sent_again_are_added_once(bench: Bench) {
    let id = bench.add(0, job()).await;
    say(&bench, 0, &[lines(&id, 5, 2, 2)]).await;
    say(&bench, 1, &[lines(&id, 5, 2, 2)]).await;
    say(&bench, 1, &[lines(&id, 5, 1, 1)]).await;
    // The worker has not heard that the first two were added.
    say(&bench, 2, &[lines(&id, 5, 4, 4)]).await;
    let (head, texts) = log(&bench, &id).await;
    assert_eq!((head.as_str(), texts.len()), ("4 4 5 4", 4));
    assert_eq!(texts, ["5.1", "5.2", "5.3", "5.4"]);
    assert_sound(&bench).await;
}

async fn an_attempt_says_nothing_once_the_next_one_has(bench: Bench) {
    let id = bench.add(0, job()).await;
    say(&bench, 0, &[lines(&id, 5, 1, 1)]).await;
    say(&bench, 0, &[lines(&id, 900_719_925_474_099, 1, 1), lines(&id, 5, 3, 2)]).await;
    say(&bench, 0, &[lines(&id, 5, 4, 3)]).await;
    let (head, texts) = log(&bench, &id).await;
    assert_eq!(head, "2 2 900719925474099 1");
    assert_eq!(texts, ["5.1", "900719925474099.1"]);
    assert_sound(&bench).await;
}

async fn the_last_lines_are_kept_and_all_are_counted(bench: Bench) {
    let (many, large) = (bench.add(0, job()).await, bench.add(0, job()).await);
    say(&bench, 0, &[lines(&many, 5, 60, 60)]).await;
    say(&bench, 0, &[lines(&many, 5, 1_000, 90)]).await;
    let (head, texts) = log(&bench, &many).await;
    assert_eq!((head.as_str(), texts.len()), ("1000 100 5 1000", 100));
    assert_eq!((texts[0].as_str(), texts[10].as_str()), ("5.51", "5.911"));
    let wide = vec![format!("{START} 1 {}", "x".repeat(480)); 15].join("\n");
    for last in [15, 30] {
        let said = SaidLines { id: large.clone(), fence: 5, last, count: 15, text: wide.clone() };
        say(&bench, 0, &[said]).await;
    }
    let (_, texts) = log(&bench, &large).await;
    assert_eq!(texts.len(), 16, "8 KiB");
    assert_sound(&bench).await;
}

async fn a_log_goes_with_its_task_and_a_day_after_a_success(bench: Bench) {
    let worker = bench.worker_for(0, "w", LONG).await;
    let mut ids = Vec::new();
    for number in 1..=4 {
        let id = bench.add(0, job()).await;
        if number < 4 {
            let lease = bench.take(0, &worker, number).await;
            let dead = failed(&lease, FailureOutcome::Dead);
            let stale = if number == 1 {
                bench.complete(0, &[done(&lease)]).await
            } else {
                bench.fail(0, &[dead]).await
            };
            assert!(stale.is_empty());
        }
        say(&bench, 0, &[lines(&id, number, 1, 1)]).await;
        ids.push(id);
    }
    let kept = async || {
        let mut kept = Vec::new();
        for id in &ids {
            kept.push(!log(&bench, id).await.0.is_empty());
        }
        kept
    };
    let purge = async |at, age| {
        let purged = bench.at(at).purge(&bench.queue, keep(100, age), LONG).await.unwrap();
        assert_sound(&bench).await;
        purged
    };
    purge(DAY - 1, LONG).await;
    assert_eq!(kept().await, [true; 4]);
    purge(DAY, LONG).await;
    assert_eq!(kept().await, [false, true, true, true], "the others are still there");
    bench.at(DAY).delete_all(&bench.queue, &[&ids[1]]).await.unwrap();
    assert_eq!(kept().await, [false, false, true, true]);
    assert_sound(&bench).await;
    purge(DAY, ms(1)).await;
    assert_eq!(kept().await, [false, false, false, true], "the dead one was purged");
    bench.at(DAY).cancel(&ids[3]).await.unwrap();
    assert_eq!(kept().await, [false, false, false, true]);
    purge(2 * DAY, ms(1)).await;
    assert_eq!(bench.names().await.iter().filter(|name| name.starts_with("log")).count(), 0);
}

async fn a_queue_keeps_the_logs_that_were_added_to_last(bench: Bench) {
    let new = || TaskId::new(bench.queue.clone());
    let ids: Vec<TaskId> = (0..8_200).map(|_| new()).collect();
    for (at, part) in (0..).zip(ids.chunks(64)) {
        let said: Vec<_> = part.iter().map(|id| lines(id, 5, 1, 1)).collect();
        say(&bench, at, &said).await;
        if at == 100 {
            say(&bench, at, &[lines(&ids[0], 5, 2, 1)]).await;
        }
    }
    let size: u64 = bench.raw(redis::cmd("HLEN").arg(bench.key("logs"))).await;
    assert_eq!(size, 8_192);
    let mut there = redis::cmd("HMGET");
    there.arg(bench.key("logs"));
    for id in &ids[..10] {
        there.arg(id.stored());
    }
    let there: Vec<Option<String>> = bench.raw(&there).await;
    let there: Vec<bool> = there.iter().map(Option::is_some).collect();
    let mut expected = [false; 10];
    (expected[0], expected[9]) = (true, true);
    assert_eq!(there, expected, "the first one was added to again");
    assert_sound(&bench).await;
}

/// Of more tasks than one purge looks at, all but the last are still there.
async fn a_purge_keeps_the_order_of_the_logs_of_tasks_that_are_there(bench: Bench) {
    let mut ids = Vec::new();
    for at in 0..100 {
        let id = bench.add(0, job()).await;
        say(&bench, at, &[lines(&id, 5, 1, 1)]).await;
        ids.push(id);
    }
    let gone = TaskId::new(bench.queue.clone());
    say(&bench, 100, &[lines(&gone, 5, 1, 1)]).await;
    let order = async || -> Vec<String> {
        bench.raw(redis::cmd("ZRANGE").arg(bench.key("logged")).arg(0).arg(-1)).await
    };
    let before = order().await;
    let purge = async || bench.at(2 * DAY).purge(&bench.queue, keep(100, LONG), LONG).await;
    assert!(!purge().await.unwrap().more, "nothing is to be removed at once");
    assert_eq!(order().await, before);
    purge().await.unwrap();
    assert_eq!(order().await, before[..100], "the next call goes on behind the first 64");
    assert_sound(&bench).await;
}

async fn logs_expire_if_nobody_purges_them(bench: Bench) {
    let id = bench.add(0, job()).await;
    say(&bench, 0, &[lines(&id, 5, 1, 1)]).await;
    for key in ["logs", "logged"] {
        let expire = bench.key(key);
        let expires = async || -> i64 { bench.raw(redis::cmd("PTTL").arg(&expire)).await };
        assert!(expires().await > 0, "{key}");
        let _: i64 = bench.raw(redis::cmd("PERSIST").arg(&expire)).await;
        bench.at(DAY).purge(&bench.queue, keep(100, LONG), LONG).await.unwrap();
        assert!(expires().await > 0, "{key}: a purge looks after it");
    }
}

on_both![
    a_purge_keeps_the_order_of_the_logs_of_tasks_that_are_there,
    logs_expire_if_nobody_purges_them,
    lines_that_are_sent_again_are_added_once,
    an_attempt_says_nothing_once_the_next_one_has,
    the_last_lines_are_kept_and_all_are_counted,
    a_log_goes_with_its_task_and_a_day_after_a_success,
    a_queue_keeps_the_logs_that_were_added_to_last,
];
