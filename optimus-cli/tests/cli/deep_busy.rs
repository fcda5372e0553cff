//! `doctor --deep` finds nothing in a sound store whose tasks run, wait, fail and end meanwhile.

use std::{sync::Arc, time::Duration};

use optimus::{Backoff, Due, Gate, Limit, group};
use optimus_testkit::eventually;

use crate::{
    deep::{SOON, Ward},
    stage::send,
};

/// How often the keys are read while tasks run.
const READS: usize = 10;
/// No more tasks are submitted while so many wait.
const WAITING_MAX: u64 = 300;

/// Submits tasks of all kinds without an end.
async fn submit_all_kinds(ward: &Ward) {
    let gate = ward.client.gate("mail", Gate::Named("few".into()));
    gate.set(Limit::new().max_working(3)).await.unwrap();
    let mut number: u64 = 0;
    loop {
        let mut calls = Vec::new();
        for _ in 0..40 {
            number += 1;
            let how = match number % 4 {
                0 => "fail: it does",
                1 => "cancel",
                _ => "sent",
            };
            let backoff = Backoff::Fixed { wait: Duration::from_millis(10), jitter: 0.0 };
            let call = send(how.to_owned()).biz_id(number).max_retry(1).backoff(backoff);
            calls.push(match number % 5 {
                0 => call.lane(format!("lane-{}", number % 20)),
                1 => call.limit("few"),
                2 => call.due(Due::In(Duration::from_millis(number % 50))),
                3 => call.priority(5),
                _ => call,
            });
        }
        ward.client.submit_all(calls).await.unwrap();
        let members = ["a", "b", "c"].map(|how| send(how.to_owned()));
        ward.client.submit_flow(group(members)).await.unwrap();
        eventually("workers keep up", SOON, async || {
            let counts = ward.inspector().counts("mail").await.unwrap();
            counts.ready + counts.blocked < WAITING_MAX
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sound_store_whose_tasks_run_meanwhile_has_no_violation() {
    let ward = Arc::new(Ward::open().await);
    let checking = {
        let ward = Arc::clone(&ward);
        tokio::task::spawn_blocking(move || {
            for _ in 0..READS {
                let rows = ward.optimus(&["doctor", "--deep", "--json"]).json();
                let deep: Vec<_> = rows.iter().filter(|row| row["check"] == "deep").collect();
                assert!(!deep.is_empty(), "{rows:#?}");
                assert!(deep.iter().all(|row| row["level"] != "warning"), "{deep:#?}");
            }
        })
    };
    let checked = ward.worker().run_until(async {
        tokio::select! {
            checked = checking => checked.unwrap(),
            () = submit_all_kinds(&ward) => {}
        }
    });
    checked.await.unwrap();
    let read = ward.optimus(&["doctor", "--deep"]).out;
    assert!(read.contains("are sound"), "{read}");
}
