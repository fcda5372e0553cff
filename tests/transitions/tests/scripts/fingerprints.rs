//! `fingerprints`: the dead tasks by the causes of their deaths.

use optimus_core::broker::{DeadGroups, FailureOutcome};
use redis::cmd;

use crate::{
    acts::{Grants, failed, ms},
    bench::Bench,
    jobs::jobs,
};

/// Returns an entry of the error history as a worker writes it.
fn entry(message: &str, fingerprint: &str) -> String {
    let message = message.replace('"', "\\\"");
    let known = format!(r#""message":"{message}","attempt":1,"worker":"w","at_ms":0"#);
    format!(r#"{{"reason":"failed",{known},"fp":"{fingerprint}"}}"#)
}

/// Lets tasks die with these entries, one each second from this ms on.
async fn die(bench: &Bench, from: u64, entries: &[String]) {
    bench.submit(from, &jobs(entries.len())).await;
    let worker = bench.worker_for(from, "w", ms(60_000_000)).await;
    let claim = bench.claim(from, &worker, bench.next_number() + 1_000, entries.len()).await;
    for (second, (lease, entry)) in claim.leases(&worker).iter().zip(entries).enumerate() {
        let mut failure = failed(lease, FailureOutcome::Dead);
        failure.error.clone_from(entry);
        assert!(bench.fail(from + 1_000 * second as u64, &[failure]).await.is_empty());
    }
}

async fn read(bench: &Bench) -> DeadGroups {
    bench.now().dead_groups(&bench.queue, 10_000).await.unwrap()
}

async fn dead_tasks_are_counted_by_the_fingerprints_of_their_last_errors(bench: Bench) {
    let smtp = entry("smtp-1 is away", "AAAAAAAAAAA");
    let trap = entry(r#"see ,"fp":"CCCCCCCCCCC"}"#, "BBBBBBBBBBB");
    let lost = r#"{"reason":"lost","attempt":1,"worker":"w"}"#.to_owned();
    die(&bench, 0, &[smtp.clone(), trap, smtp.clone(), lost, smtp]).await;
    let found = read(&bench).await;
    assert_eq!((found.dead, found.read), (5, 5));
    let groups: Vec<_> = found
        .groups
        .iter()
        .map(|g| (g.fingerprint.as_str(), g.reason.as_str(), g.dead, g.last_ms - g.first_ms))
        .collect();
    let expected =
        [("AAAAAAAAAAA", "failed", 3, 4_000), ("BBBBBBBBBBB", "failed", 1, 0), ("", "lost", 1, 0)];
    assert_eq!(groups, expected);
    let latest = bench.now().list(&bench.queue, optimus_core::TaskState::Dead, 1, "").await;
    assert_eq!(found.groups[0].sample, latest.unwrap().rows[0].id, "the last task is the sample");
    // A requeued task is no longer dead.
    bench.at(9_000).requeue(&found.groups[1].sample).await.unwrap();
    let found = read(&bench).await;
    assert_eq!((found.dead, found.groups.len()), (4, 2));
}

async fn long_histories_take_no_longer_than_their_bytes(bench: Bench) {
    let line = format!("5 {}", entry(&"x".repeat(8_000), "AAAAAAAAAAA"));
    let history = [line.as_str(); 10].join("\n");
    for number in 0..40_u64 {
        let id = format!("0-{number:020}");
        let (dead, errors) = (bench.key("dead"), bench.key("errors"));
        let _: u8 = bench.raw(cmd("ZADD").arg(dead).arg(number).arg(&id)).await;
        let _: u8 = bench.raw(cmd("HSET").arg(errors).arg(&id).arg(&history)).await;
        let _: u8 = bench.raw(cmd("HSET").arg(bench.key("tasks")).arg(&id).arg("{}\n")).await;
    }
    let begun = std::time::Instant::now();
    let found = read(&bench).await;
    assert_eq!(found.read, 40);
    bench.now().list(&bench.queue, optimus_core::TaskState::Dead, 40, "").await.unwrap();
    // The square of a line would take a second a task.
    assert!(begun.elapsed() < ms(10_000), "{:?}", begun.elapsed());
}

async fn many_dead_tasks_are_read_in_steps_with_each_task_once(bench: Bench) {
    let key = bench.key("dead");
    let errors = bench.key("errors");
    for chunk in 0..7_u64 {
        let mut dead = cmd("ZADD");
        let mut history = cmd("HSET");
        dead.arg(&key);
        history.arg(&errors);
        for number in 0..200_u64 {
            let id = format!("0-{:020}", chunk * 200 + number);
            // Many tasks die in one ms.
            dead.arg(chunk / 3).arg(&id);
            history.arg(&id).arg(format!(
                "5 {}",
                entry("x", ["AAAAAAAAAAA", "B-_BBBBBBBB"][usize::from(number % 2 == 0)])
            ));
        }
        let () = bench.raw(&dead).await;
        let () = bench.raw(&history).await;
    }
    let found = read(&bench).await;
    assert_eq!((found.dead, found.read), (1_400, 1_400));
    let of = |name: &str| {
        found.groups.iter().filter(|g| g.fingerprint == name).map(|g| g.dead).sum::<u64>()
    };
    assert_eq!((of("AAAAAAAAAAA"), of("B-_BBBBBBBB")), (700, 700));
    let some = bench.now().dead_groups(&bench.queue, 600).await.unwrap();
    assert_eq!((some.dead, some.read), (1_400, 1_000), "the read ends after a step");
}

async fn long_histories_end_a_step_early(bench: Bench) {
    let long = entry(&"x".repeat(200_000), "AAAAAAAAAAA");
    let entries: Vec<String> = std::iter::repeat_n(long, 12).collect();
    die(&bench, 0, &entries).await;
    let found = read(&bench).await;
    assert_eq!((found.dead, found.read), (12, 12));
    assert_eq!(found.groups.len(), 2, "6 and 6, because a step reads about 1 MiB");
}

on_both![
    dead_tasks_are_counted_by_the_fingerprints_of_their_last_errors,
    long_histories_take_no_longer_than_their_bytes,
    many_dead_tasks_are_read_in_steps_with_each_task_once,
    long_histories_end_a_step_early,
];
