//! Layers are told of each attempt's end once, however it ends, and nobody waits for that.

mod common;

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use common::{Bench, Double, Gate, Wait, hog::Hog};
use optimus_core::{
    Backoff, BoxError, Cancel, Context, End, Layer, Outcome, Reason, Snooze, Task, TaskHandle,
    TaskId, TaskOptions,
};
use optimus_testkit::{Hold, RedisServer, eventually};
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(20);

/// What was told, with the task's id.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<(TaskId, End)>>>);

impl Layer for Heard {
    async fn ended(&self, ctx: &Context, end: &End) {
        self.0.lock().unwrap().push((ctx.id().clone(), end.clone()));
    }
}

impl Heard {
    /// Of one task, in order.
    fn of(&self, id: &TaskId) -> Vec<String> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(other, _)| other == id).map(|(_, end)| text(end)).collect()
    }

    async fn has(&self, id: &TaskId, expected: &[&str]) {
        let count = expected.len();
        eventually("as many are told", SOON, async || self.of(id).len() >= count).await;
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
        Outcome::Lost => "lost",
        _ => "unknown",
    };
    match end.error() {
        Some(error) => format!("{outcome}: {}: {}", error.reason, error.message),
        None => outcome.to_owned(),
    }
}

/// Ends as it is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Way {
    Returns,
    Fails,
    Panics,
    Hangs,
    Snoozes,
    Cancels,
}

#[derive(Serialize, Deserialize)]
struct Ends {
    way: Way,
}

impl Task for Ends {
    const NAME: &'static str = "ends";
    type Output = ();

    fn options() -> TaskOptions {
        let wait = Duration::from_millis(10);
        TaskOptions::new().backoff(Backoff::Fixed { wait, jitter: 0.0 }).max_retry(0)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        match self.way {
            Way::Returns => Ok(()),
            Way::Fails => Err("no".into()),
            Way::Panics => panic!("boom"),
            Way::Hangs => pending().await,
            Way::Snoozes => Err(Snooze::lasting(SOON).into()),
            Way::Cancels => Err(Cancel.into()),
        }
    }
}

/// Has the name of the task and other arguments.
#[derive(Serialize, Deserialize)]
struct Misfit {}

impl Task for Misfit {
    const NAME: &'static str = "ends";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Does not stop when it is told to, and fails once the gate is open.
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

/// Waits at the gate when it is told.
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
    async fn each_end_of_an_attempt_is_told_once(bench: Bench) {
        let heard = Heard::default();
        let worker = bench.start(bench.worker().task_type::<Ends>().layer(heard.clone()));
        let mut expected = Vec::new();
        for (way, told) in [
            (Way::Returns, "success"),
            (Way::Fails, "dead: failed: no"),
            (Way::Panics, "dead: panicked: boom"),
            (Way::Snoozes, "snoozed"),
            (Way::Cancels, "cancelled"),
        ] {
            let handle = bench.client.submit(Ends { way }.call()).await.unwrap();
            heard.has(handle.id(), &[told]).await;
            expected.push((handle, vec![told]));
        }
        let failing = Ends { way: Way::Fails }.call().max_retry(1);
        let handle = bench.client.submit(failing).await.unwrap();
        let twice = ["retry: failed: no", "dead: failed: no"];
        heard.has(handle.id(), &twice).await;
        expected.push((handle, twice.to_vec()));
        worker.stop().await;
        for (handle, told) in expected {
            assert_eq!(heard.of(handle.id()), told);
        }
        let all = heard.0.lock().unwrap();
        // Of a first attempt it is known how long the task has waited.
        let waited: Vec<bool> = all.iter().map(|(_, end)| end.waited.is_some()).collect();
        assert_eq!(waited, [true, true, true, true, true, true, false]);
    }

    async fn timeouts_and_misfitting_arguments_are_told(bench: Bench) {
        let heard = Heard::default();
        let worker = bench.start(bench.worker().task_type::<Ends>().layer(heard.clone()));
        let timeout = Duration::from_millis(200);
        let hangs = bench.client.submit(Ends { way: Way::Hangs }.call().timeout(timeout));
        let (hangs, misfit) = (hangs.await.unwrap(), bench.client.submit(Misfit {}.call()));
        let misfit = misfit.await.unwrap();
        eventually("both are told", SOON, async || heard.0.lock().unwrap().len() == 2).await;
        worker.stop().await;
        let told = |handle: &TaskHandle<()>| heard.of(handle.id()).remove(0);
        assert!(told(&hangs).starts_with("dead: timed out"), "{}", told(&hangs));
        assert!(told(&misfit).starts_with("dead: undecodable"), "{}", told(&misfit));
        let all = heard.0.lock().unwrap();
        assert!(all.iter().any(|(id, end)| id == hangs.id() && end.ran >= timeout));
    }

    async fn cancels_and_tasks_that_a_shutdown_gives_back_are_told(bench: Bench) {
        let (heard, gate) = (Heard::default(), Gate::new());
        let builder = bench.worker().shutdown_grace(Duration::ZERO).task_type::<Wait>();
        let worker = bench.start(builder.data(gate.clone()).layer(heard.clone()));
        let cancelled = waiting(&bench, &gate).await;
        cancelled.cancel().await.unwrap();
        heard.has(cancelled.id(), &["cancelled"]).await;
        let given_back = waiting(&bench, &gate).await;
        worker.stop().await;
        assert_eq!(heard.of(given_back.id()), ["given back"]);
        assert_eq!(heard.of(cancelled.id()), ["cancelled"]);
    }

    async fn a_timeout_is_told_while_the_handler_still_keeps_its_thread(bench: Bench) {
        let (heard, hold) = (Heard::default(), Hold::new());
        let builder = bench.worker().task_type::<Hog>().data(hold.clone());
        let worker = bench.start(builder.layer(heard.clone()));
        let call = Hog {}.call().timeout(Duration::from_millis(200)).max_retry(0);
        let handle = bench.client.submit(call).await.unwrap();
        hold.arrivals().wait_for(1).await;
        eventually("it is told", SOON, async || !heard.of(handle.id()).is_empty()).await;
        hold.release();
        common::died_of(&handle, Reason::TimedOut).await;
        worker.stop().await;
        assert_eq!(heard.of(handle.id()).len(), 1);
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
        assert_eq!(gate.arrivals().hits(), 2, "a shutdown waits for them");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loss_of_a_lease_is_told() {
    let server = RedisServer::start();
    let bench = Bench::at(&server.url()).await;
    let (heard, gate) = (Heard::default(), Gate::new());
    let builder = bench.worker().task_type::<Stubborn>().data(gate.clone());
    let worker = bench.start(builder.layer(heard.clone()));
    let handle = bench.client.submit(Stubborn {}.call()).await.unwrap();
    gate.began.wait_for(1).await;
    let workers = async || bench.client.inspector().workers(handle.id().queue()).await.unwrap();
    let before = workers().await.remove(0).id;
    bench.raw().await.run("FLUSHALL").await;
    let is_new = async || workers().await.first().is_some_and(|worker| worker.id != before);
    eventually("the worker has a new id", SOON, is_new).await;
    // It stops what it held just before it uses that id.
    gate.open.hit();
    heard.has(handle.id(), &["lost"]).await;
    worker.stop().await;
    assert_eq!(heard.of(handle.id()), ["lost"]);
}
