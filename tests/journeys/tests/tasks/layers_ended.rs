//! Layers receive the end of each attempt once, however it ends. No result waits for that.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Bench, Double, Gate, Wait, blocking_task::KeepThread};
use optimus_core::{
    Backoff, BoxError, Cancel, Context, End, Layer, Outcome, Reason, Snooze, Task, TaskHandle,
    TaskId, TaskOptions,
};
use optimus_testkit::{Hold, RedisServer, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

/// The ends that the layer received, with the ids of their tasks.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<(TaskId, End)>>>);

impl Layer for Received {
    async fn ended(&self, ctx: &Context, end: &End) {
        self.0.lock().unwrap().push((ctx.id().clone(), end.clone()));
    }
}

impl Received {
    /// Returns the ends of one task, in order.
    fn of(&self, id: &TaskId) -> Vec<String> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(other, _)| other == id).map(|(_, end)| text(end)).collect()
    }

    async fn has(&self, id: &TaskId, expected: &[&str]) {
        let count = expected.len();
        eventually("this many ends have arrived", SOON, async || self.of(id).len() >= count).await;
        assert_eq!(self.of(id), expected);
    }
}

fn text(end: &End) -> String {
    let outcome = match &end.outcome {
        Outcome::Success => "success",
        Outcome::Retry { .. } => "retry",
        Outcome::Dead(_) => "dead",
        Outcome::Cancelled => "cancelled",
        Outcome::Snoozed(_) => "snoozed",
        Outcome::GivenBack => "given back",
        Outcome::Stale => "stale",
        _ => "unknown",
    };
    match end.error() {
        Some(error) => {
            // The place of a panic comes before its text.
            let text = error.message.rsplit(": ").next().unwrap_or_default();
            format!("{outcome}: {}: {text}", error.reason)
        }
        None => outcome.to_owned(),
    }
}

/// Ends in the way that its argument states.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Ending {
    Returns,
    Fails,
    Panics,
    Hangs,
    Snoozes,
    Cancels,
}

#[derive(Serialize, Deserialize)]
struct Ends {
    ending: Ending,
}

impl Task for Ends {
    const NAME: &'static str = "ends";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(10);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 }).max_retry(0)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        match self.ending {
            Ending::Returns => Ok(()),
            Ending::Fails => Err("no".into()),
            Ending::Panics => panic!("boom"),
            Ending::Hangs => pending().await,
            Ending::Snoozes => Err(Snooze::new(SOON).into()),
            Ending::Cancels => Err(Cancel.into()),
        }
    }
}

/// A task with the same name and other arguments.
#[derive(Serialize, Deserialize)]
struct Misfit {}

impl Task for Misfit {
    const NAME: &'static str = "ends";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Ignores a request to stop, and fails once the gate is open.
#[derive(Serialize, Deserialize)]
struct Stubborn {}

impl Task for Stubborn {
    const NAME: &'static str = "stubborn";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let gate: Gate = ctx.data().unwrap();
        gate.began.hit();
        gate.open.wait_for(1).await;
        while !ctx.is_cancelled() {
            tokio::task::yield_now().await;
        }
        Err("too late".into())
    }
}

/// A layer that waits at the gate in its `ended`.
struct Waits(optimus_testkit::Gate);

impl Layer for Waits {
    async fn ended(&self, _: &Context, _: &End) {
        self.0.pass().await;
    }
}

async fn waiting(bench: &Bench, gate: &Gate) -> TaskHandle<()> {
    let before = gate.began.hits();
    let handle = bench.client.submit(Wait {}.call()).await.unwrap();
    gate.began.wait_for(before + 1).await;
    handle
}

on_both! {
    async fn each_end_of_an_attempt_arrives_once(bench: Bench) {
        let received = Received::default();
        let worker = bench.start(bench.worker().task_type::<Ends>().layer(received.clone()));
        let mut expected = Vec::new();
        for (ending, end) in [
            (Ending::Returns, "success"),
            (Ending::Fails, "dead: failed: no"),
            (Ending::Panics, "dead: panicked: boom"),
            (Ending::Snoozes, "snoozed"),
            (Ending::Cancels, "cancelled"),
        ] {
            let handle = bench.client.submit(Ends { ending }.call()).await.unwrap();
            received.has(handle.id(), &[end]).await;
            expected.push((handle, vec![end]));
        }
        let failing = Ends { ending: Ending::Fails }.call().max_retry(1);
        let handle = bench.client.submit(failing).await.unwrap();
        let twice = ["retry: failed: no", "dead: failed: no"];
        received.has(handle.id(), &twice).await;
        expected.push((handle, twice.to_vec()));
        worker.stop().await;
        for (handle, end) in expected {
            assert_eq!(received.of(handle.id()), end);
        }
        let all = received.0.lock().unwrap();
        // For a first attempt, the wait of the task is known.
        let waited: Vec<bool> = all.iter().map(|(_, end)| end.waited.is_some()).collect();
        assert_eq!(waited, [true, true, true, true, true, true, false]);
    }

    async fn timeouts_and_arguments_that_do_not_fit_arrive(bench: Bench) {
        let received = Received::default();
        let worker = bench.start(bench.worker().task_type::<Ends>().layer(received.clone()));
        let timeout = Duration::from_millis(200);
        let hangs = bench.client.submit(Ends { ending: Ending::Hangs }.call().timeout(timeout));
        let (hangs, misfit) = (hangs.await.unwrap(), bench.client.submit(Misfit {}.call()));
        let misfit = misfit.await.unwrap();
        eventually("both ends arrived", SOON, async || received.0.lock().unwrap().len() == 2).await;
        worker.stop().await;
        let end = |handle: &TaskHandle<()>| received.of(handle.id()).remove(0);
        assert!(end(&hangs).starts_with("dead: timed out"), "{}", end(&hangs));
        assert!(end(&misfit).starts_with("dead: undecodable"), "{}", end(&misfit));
        let all = received.0.lock().unwrap();
        assert!(all.iter().any(|(id, end)| id == hangs.id() && end.ran >= timeout));
    }

    async fn cancels_and_tasks_that_a_shutdown_gives_back_arrive(bench: Bench) {
        let (received, gate) = (Received::default(), Gate::new());
        let builder = bench.worker().shutdown_grace(Duration::ZERO).task_type::<Wait>();
        let worker = bench.start(builder.data(gate.clone()).layer(received.clone()));
        let cancelled = waiting(&bench, &gate).await;
        cancelled.cancel().await.unwrap();
        received.has(cancelled.id(), &["cancelled"]).await;
        let given_back = waiting(&bench, &gate).await;
        worker.stop().await;
        assert_eq!(received.of(given_back.id()), ["given back"]);
        assert_eq!(received.of(cancelled.id()), ["cancelled"]);
    }

    async fn a_timeout_arrives_while_the_handler_still_keeps_its_thread(bench: Bench) {
        let (received, hold) = (Received::default(), Hold::new());
        let builder = bench.worker().task_type::<KeepThread>().data(hold.clone());
        let worker = bench.start(builder.layer(received.clone()));
        let call = KeepThread {}.call().timeout(Duration::from_millis(200)).max_retry(0);
        let handle = bench.client.submit(call).await.unwrap();
        hold.arrivals().wait_for(1).await;
        eventually("the end arrived", SOON, async || !received.of(handle.id()).is_empty()).await;
        hold.release();
        crate::common::died_of(&handle, Reason::TimedOut).await;
        worker.stop().await;
        assert_eq!(received.of(handle.id()).len(), 1);
    }

    async fn a_report_does_not_wait_for_layers_and_the_slot_does(bench: Bench) {
        let gate = optimus_testkit::Gate::new();
        let builder = bench.worker().concurrency(1).task_type::<Double>();
        let worker = bench.start(builder.layer(Waits(gate.clone())));
        let calls = [1, 2].map(|number| Double { number }.call());
        let handles = bench.client.submit_all(calls).await.unwrap();
        assert_eq!(handles[0].result_within(SOON).await.unwrap(), 2);
        gate.arrivals().wait_for(1).await;
        assert!(!handles[1].status().await.unwrap().is_terminal());
        gate.open();
        assert_eq!(handles[1].result_within(SOON).await.unwrap(), 4);
        worker.stop().await;
        assert_eq!(gate.arrivals().hits(), 2, "a shutdown waits for the layers");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_a_lease_arrives() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (received, gate) = (Received::default(), Gate::new());
    let builder = bench.worker().task_type::<Stubborn>().data(gate.clone());
    let worker = bench.start(builder.layer(received.clone()));
    let handle = bench.client.submit(Stubborn {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    let workers = async || bench.client.inspector().workers(handle.id().queue()).await.unwrap();
    let before = workers().await.remove(0).id;
    bench.raw().await.run("FLUSHALL").await;
    let is_new = async || workers().await.first().is_some_and(|worker| worker.id != before);
    eventually("the worker has a new id", SOON, is_new).await;
    // The worker stops the attempts that it held just before it uses the new id.
    gate.open.hit();
    received.has(handle.id(), &["stale"]).await;
    worker.stop().await;
    assert_eq!(received.of(handle.id()), ["stale"]);
}
