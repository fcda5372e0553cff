//! `tally` and `stats`: what workers have counted, by minutes, hours and days.

use std::time::Duration;

use optimus_core::{
    OTHER_TASKS, Stats, StatsUnit, TaskStats, WorkerId,
    broker::{BrokerError, KnownKeys, Refusal},
};
use redis::cmd;

use crate::{bench::Bench, world_tallies::one_success};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

async fn stats(bench: &Bench, at: u64, unit: StatsUnit, last: u32) -> Stats {
    bench.at(at).stats(&bench.queue, unit, last).await.unwrap()
}

async fn add(bench: &Bench, at: u64, worker: &WorkerId, number: u64) {
    let counted = [("job", &one_success())];
    bench.at(at).tally(&bench.queue, worker, number, counted).await.unwrap();
}

/// Returns the successes of each row.
fn rows(stats: &Stats) -> Vec<u64> {
    stats.rows.iter().map(|row| row.total().successes).collect()
}

async fn a_call_that_is_sent_again_counts_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    add(&bench, 0, &worker, 1).await;
    add(&bench, 0, &worker, 1).await;
    assert_eq!(stats(&bench, 0, StatsUnit::Minute, 1).await.total(), one_success());
    add(&bench, 5_000, &worker, 2).await;
    add(&bench, 5_000, &worker, 1).await;
    let total = stats(&bench, 5_000, StatsUnit::Day, 1).await.total();
    assert_eq!((total.successes, total.run.count(), total.wait.count()), (2, 2, 2));
}

async fn a_worker_that_is_not_registered_is_refused(bench: Bench) {
    let gone = WorkerId::from_stored("gone");
    let counted = one_success();
    let answer = bench.at(0).tally(&bench.queue, &gone, 1, [("job", &counted)]).await;
    assert!(matches!(answer, Err(BrokerError::Refused(Refusal::Lapsed, _))), "{answer:?}");
    assert!(bench.names().await.is_empty());
}

async fn a_finished_minute_is_in_its_hour_and_its_day_and_is_counted_once(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (number, at) in (1..).zip([0, 1_000, MINUTE, HOUR, 3 * HOUR, DAY, DAY + MINUTE]) {
        add(&bench, at, &worker, number).await;
    }
    let now = DAY + MINUTE;
    assert_eq!(rows(&stats(&bench, now, StatsUnit::Minute, 120).await), [1, 1]);
    assert_eq!(rows(&stats(&bench, now, StatsUnit::Hour, 336).await), [3, 1, 1, 2]);
    assert_eq!(rows(&stats(&bench, now, StatsUnit::Hour, 1).await), [2]);
    assert_eq!(rows(&stats(&bench, now, StatsUnit::Day, 180).await).iter().sum::<u64>(), 7);
    let empty = stats(&bench, now + 10 * MINUTE, StatsUnit::Minute, 5).await;
    assert!(empty.rows.is_empty(), "the rows are older");
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn a_read_that_knows_the_last_hour_reads_the_next_one(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (queues, mut known) = ([bench.queue.clone()], KnownKeys::default());
    let times = [0, MINUTE, HOUR, HOUR + MINUTE, 2 * HOUR, 5 * HOUR, 6 * HOUR];
    for (number, at) in (1..).zip(times) {
        add(&bench, at, &worker, number).await;
        let broker = bench.at(at);
        let seen = broker.overview(&queues, &mut KnownKeys::default()).await.unwrap().remove(0);
        let again = broker.overview(&queues, &mut known).await.unwrap().remove(0);
        let (seen, again) = (rows(&seen.unwrap().stats), rows(&again.unwrap().stats));
        assert_eq!(again, seen, "at {at}");
    }
}

async fn a_read_that_knows_a_queue_forgets_the_last_hour_of_one_that_was_removed(bench: Bench) {
    let (queues, mut known) = ([bench.queue.clone()], KnownKeys::default());
    // Only the first queue of this name has an hour before the open one.
    for times in [&[0, HOUR, HOUR + MINUTE][..], &[HOUR, HOUR + MINUTE]] {
        let worker = bench.worker(0, "w").await;
        for (number, at) in (1..).zip(times) {
            add(&bench, *at, &worker, number).await;
            let broker = bench.at(*at);
            let seen = broker.overview(&queues, &mut KnownKeys::default()).await.unwrap();
            let again = broker.overview(&queues, &mut known).await.unwrap();
            let [seen, again] = [seen, again].map(|mut all| all.remove(0).unwrap().stats);
            assert_eq!(rows(&again), rows(&seen), "at {at} of {times:?}");
        }
        for name in bench.names().await {
            let () = bench.raw(cmd("DEL").arg(bench.key(&name))).await;
        }
    }
}

async fn a_queue_that_is_named_twice_is_read_twice(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let (queues, mut known) = ([bench.queue.clone(), bench.queue.clone()], KnownKeys::default());
    for (number, at) in (1..).zip([0, HOUR, 2 * HOUR]) {
        add(&bench, at, &worker, number).await;
        let seen = bench.at(at).overview(&queues, &mut known).await.unwrap();
        let rows: Vec<_> = seen.into_iter().map(|seen| rows(&seen.unwrap().stats)).collect();
        assert_eq!(rows[0], rows[1], "at {at}");
    }
}

async fn a_clock_that_is_set_back_loses_no_count(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (number, at) in (1..).zip([5 * MINUTE, MINUTE, 5 * MINUTE, 2 * DAY, 0, 2 * DAY]) {
        add(&bench, at, &worker, number).await;
    }
    for unit in [StatsUnit::Hour, StatsUnit::Day] {
        let all = stats(&bench, 2 * DAY, unit, unit.kept()).await;
        assert_eq!(all.total().successes, 6, "{unit:?}");
    }
    let days = rows(&stats(&bench, 2 * DAY, StatsUnit::Day, 180).await);
    assert_eq!(days, [4, 2], "the rows of one day are added");
    assert_eq!(bench.fsck().await, [""; 0]);
}

async fn tasks_beyond_64_count_together(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let one = one_success();
    let names: Vec<String> = (0..100).map(|number| format!("task-{number}")).collect();
    for (number, names) in (1..).zip(names.chunks(16)) {
        let counted = names.iter().map(|name| (name.as_str(), &one));
        bench.at(0).tally(&bench.queue, &worker, number, counted).await.unwrap();
    }
    let found = stats(&bench, 0, StatsUnit::Minute, 1).await.by_task();
    assert_eq!((found.len(), found[OTHER_TASKS].successes), (65, 36));
    // The same is true of the hour, to which the minute is added.
    add(&bench, HOUR, &worker, 99).await;
    let found = stats(&bench, HOUR, StatsUnit::Hour, 2).await;
    assert_eq!(found.rows[0].tasks.len(), 65);
    assert_eq!(found.total().successes, 101);
}

async fn rows_that_cannot_be_read_are_left_out(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let key = bench.key("tally");
    for strange in ["", "what", "7", "7\n", "7\njob", "7\njob x y z", "7\njob 1 2:x 999:1"] {
        let () = bench.raw(cmd("HSET").arg(&key).arg("minute").arg(strange)).await;
        let number = bench.next_number();
        add(&bench, MINUTE * number, &worker, number).await;
    }
    let found = stats(&bench, 7 * MINUTE, StatsUnit::Minute, 120).await;
    assert_eq!(found.total().successes, 1, "each strange text has replaced the row before");
}

/// The memory that two tasks take that run all the time, for 180 days.
async fn a_busy_task_takes_at_most_100_kb(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let mut number = 0;
    let mut busy = TaskStats::default();
    busy.successes = 9_812;
    (busy.retries, busy.deaths) = (123, 17);
    for us in 0..9_952_u64 {
        let run = Duration::from_micros(2_000 + us * us % 48_000);
        busy.record(Some(run), Some(Duration::from_millis(us * us % 900)));
    }
    let counted = [("send_welcome_mail", &busy), ("charge_card", &busy)];
    let mut at = 0;
    while at < 182 * DAY {
        number += 1;
        bench.at(at).tally(&bench.queue, &worker, number, counted).await.unwrap();
        // The last two weeks have all hours, the last two hours all minutes.
        at += if at < 166 * DAY {
            DAY
        } else if at < 182 * DAY - 3 * HOUR {
            HOUR
        } else {
            MINUTE
        };
    }
    let mut bytes = 0;
    for name in ["tally", "minutes", "hours", "days"] {
        let key = bench.key(name);
        let usage = cmd("MEMORY").arg("USAGE").arg(&key).arg("SAMPLES").arg(0).to_owned();
        bytes += bench.raw::<u64>(&usage).await;
    }
    for unit in [StatsUnit::Minute, StatsUnit::Hour, StatsUnit::Day] {
        let found = stats(&bench, at, unit, unit.kept()).await.rows.len();
        assert!(found >= unit.kept() as usize - 3, "{unit:?}: {found}");
    }
    println!("{bytes} bytes for two tasks");
    assert!(bytes <= 2 * 100_000, "{bytes} bytes");
}

#[tokio::test]
async fn statistics_take_bounded_memory() {
    a_busy_task_takes_at_most_100_kb(Bench::redis().await).await;
}

on_both![
    a_call_that_is_sent_again_counts_once,
    a_worker_that_is_not_registered_is_refused,
    a_finished_minute_is_in_its_hour_and_its_day_and_is_counted_once,
    a_read_that_knows_the_last_hour_reads_the_next_one,
    a_read_that_knows_a_queue_forgets_the_last_hour_of_one_that_was_removed,
    a_queue_that_is_named_twice_is_read_twice,
    a_clock_that_is_set_back_loses_no_count,
    tasks_beyond_64_count_together,
    rows_that_cannot_be_read_are_left_out,
];
