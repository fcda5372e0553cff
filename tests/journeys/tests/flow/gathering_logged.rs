//! What is logged of runs: one event for all calls that end in the same way.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{
    Bench,
    digests::{BAD, LoggedWorker, SOON, Way, apart, become_all, done, submit, three},
};
use optimus_core::{Lease, QueueName, TaskState, WorkerId};
use optimus_testkit::{EachEvent, LogEvent, eventually};
use tracing::{Level, subscriber::DefaultGuard, subscriber::set_default};

/// The events of attempts.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<LogEvent>>>);

impl Lines {
    fn kept() -> (Self, DefaultGuard) {
        let lines = Self::default();
        let kept = lines.clone();
        let keep = move |event: LogEvent| kept.0.lock().unwrap().push(event);
        (lines, set_default(EachEvent::new(keep).of("optimus").at(Level::DEBUG)))
    }

    fn of_runs(&self) -> Vec<LogEvent> {
        let lines = self.0.lock().unwrap();
        lines.iter().filter(|line| line.target == "optimus::task").cloned().collect()
    }

    /// Waits for this many, and returns the outcome of each, its task and how many calls it is for.
    async fn texts(&self, count: usize) -> Vec<String> {
        eventually("all ends are logged", SOON, async || self.of_runs().len() >= count).await;
        let text = |line: &LogEvent| {
            format!("{} {} {}", line.get("outcome"), line.get("task"), line.get("calls"))
        };
        let mut texts: Vec<String> = self.of_runs().iter().map(text).collect();
        texts.sort();
        texts
    }
}

#[tokio::test]
async fn one_line_is_logged_for_a_run() {
    let (lines, _default) = Lines::kept();
    let bench = Bench::on_memory().await;
    let logged = LoggedWorker::of(&bench);
    let handles = submit(&bench, (1..=3).map(|number| three("ann", number, Way::Plain))).await;
    become_all(&handles, TaskState::Success).await;
    assert_eq!(lines.texts(1).await, ["success three 3"]);
    let calls = [BAD, 2, 3].map(|number| three("bob", number, Way::Dies).max_retry(0));
    let handles = submit(&bench, calls).await;
    become_all(&handles, TaskState::Dead).await;
    assert_eq!(lines.texts(3).await, ["dead three 1", "dead three 2", "success three 3"]);
    logged.worker.stop().await;
}

#[tokio::test]
async fn a_line_counts_and_names_the_calls_that_end_as_it_says() {
    let (lines, _default) = Lines::kept();
    let bench = Bench::on_memory().await;
    let logged = LoggedWorker::of(&bench);
    let calls = [0, 0, 1].map(|max| three("ann", 1, Way::Fails).max_retry(max));
    let handles = submit(&bench, calls).await;
    become_all(&handles[..2], TaskState::Dead).await;
    become_all(&handles[2..], TaskState::Success).await;
    assert_eq!(lines.texts(3).await, ["dead three 2", "retry three 1", "success three 1"]);
    let dead = lines.of_runs().into_iter().find(|line| line.get("outcome") == "dead").unwrap();
    assert_eq!(dead.get("id"), handles[0].id().to_string());
    assert_eq!(dead.get("others"), handles[1].id().to_string());
    logged.worker.stop().await;
}

#[tokio::test]
async fn calls_with_results_of_their_own_are_logged_by_their_ends() {
    let (lines, _default) = Lines::kept();
    let bench = Bench::on_memory().await;
    let logged = LoggedWorker::of(&bench);
    let ways = [Way::Plain, Way::Dies, Way::Plain];
    let calls = (1..).zip(ways).map(|(number, way)| apart(number, way).max_retry(0));
    let handles = submit(&bench, calls).await;
    assert_eq!(handles[2].result_within(SOON).await.unwrap(), 30);
    assert_eq!(lines.texts(2).await, ["dead apart 1", "success apart 2"]);
    logged.worker.stop().await;
}

#[tokio::test]
async fn one_line_is_logged_for_a_run_that_is_lost_with_its_worker() {
    let (lines, _default) = Lines::kept();
    let bench = Bench::on_memory().await;
    let handles = submit(&bench, (1..=3).map(|number| three("ann", number, Way::Plain))).await;
    let (broker, queue) = (bench.client.broker(), QueueName::new("default").unwrap());
    let worker = WorkerId::from_stored("lost");
    broker.register(&queue, &worker, Duration::from_millis(500), "{}").await.unwrap();
    let claimed = broker.claim(&queue, &worker, 1, 1).await.unwrap();
    let leader = Lease { id: claimed.grants[0].id.clone(), worker, token: claimed.token };
    assert_eq!(broker.collect(&leader, 2).await.unwrap().unwrap().grants.len(), 2);
    let logged = LoggedWorker::of(&bench);
    for handle in &handles {
        assert_eq!(done(handle).await, [1, 2, 3]);
    }
    assert_eq!(lines.texts(2).await, ["retry three 3", "success three 3"]);
    let lost = lines.of_runs().into_iter().find(|line| line.get("outcome") == "retry").unwrap();
    assert_eq!(lost.get("others").split(", ").count(), 2);
    assert_eq!(logged.log.lines(), ["ann#2: [1, 2, 3]"]);
    logged.worker.stop().await;
}
