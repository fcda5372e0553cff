//! Layers that panic, block or never return. They fail only their own submit or attempt.

use std::{
    future::pending,
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, died_of};
use optimus_core::{
    BoxError, Context, DataKey, Done, End, Layer, Next, QueueName, Reason, Submission, Task,
};
use optimus_testkit::{Hold, Signal};
use optimus_worker::Worker;
use tokio::{task::spawn_blocking, time::timeout};

const SOON: Duration = Duration::from_secs(20);
const MANY: usize = 10_000;

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb was dropped");
    }
}

/// Behaves as the header `hostile` states.
#[derive(Default)]
struct Hostile(Hold);

impl Hostile {
    async fn act(&self, how: Option<&str>, place: &str) -> Result<(), BoxError> {
        match how.and_then(|how| how.strip_prefix(place)) {
            Some(" panics") => panic!("boom in {place}"),
            Some(" hangs") => pending().await,
            Some(" hangs with a bomb") => {
                let _bomb = Bomb;
                pending::<()>().await;
            }
            Some(" blocks") => self.0.keep_thread(),
            Some(" fails with a bomb") => return Err(Box::new(BombError(Bomb))),
            _ => {}
        }
        Ok(())
    }
}

#[derive(thiserror::Error)]
#[error("a bomb")]
struct BombError(Bomb);

impl std::fmt::Debug for BombError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(Bomb) = self;
        f.write_str("a bomb")
    }
}

impl Layer for Hostile {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        self.act(call.header("hostile"), "submit").await
    }

    async fn run(&self, ctx: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        self.act(ctx.header("hostile"), "before").await?;
        let done = next.run().await;
        self.act(ctx.header("hostile"), "after").await?;
        done
    }

    async fn ended(&self, ctx: &Context, _: &End) {
        drop(self.act(ctx.header("hostile"), "ended").await);
    }
}

/// Counts the ends of attempts that it receives.
#[derive(Clone, Default)]
struct Counts(Signal);

impl Layer for Counts {
    async fn ended(&self, _: &Context, _: &End) {
        self.0.hit();
    }
}

/// Keeps the proof of one attempt, and returns it for another one, whose handler does not run.
#[derive(Default)]
struct Swaps(Mutex<Option<Done>>);

impl Layer for Swaps {
    async fn run(&self, _: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        if let Some(of_another) = self.0.lock().unwrap().take() {
            return Ok(of_another);
        }
        *self.0.lock().unwrap() = Some(next.run().await?);
        Err("kept".into())
    }
}

/// Passes on the outcome of the layers inside it, and counts their successes.
#[derive(Clone, Default)]
struct Successes(Signal);

impl Layer for Successes {
    async fn run(&self, _: &Context, next: Next<'_>) -> Result<Done, BoxError> {
        let done = next.run().await?;
        self.0.hit();
        Ok(done)
    }
}

/// Blocks when it is dropped.
struct BlocksInDrop(Hold);

impl Layer for BlocksInDrop {}

impl Drop for BlocksInDrop {
    fn drop(&mut self) {
        self.0.keep_thread();
    }
}

fn hostile(how: &str) -> optimus_core::Call<Double> {
    let call = Double { number: 4 }.call().max_retry(0).timeout(Duration::from_millis(500));
    call.header("hostile", how)
}

async fn runs_others(bench: &Bench) {
    let handle = bench.client.submit(Double { number: 4 }.call()).await.unwrap();
    assert_eq!(handle.result_within(SOON).await.unwrap(), 8);
}

async fn ready(bench: &Bench) -> u64 {
    let queue = QueueName::new("default").unwrap();
    bench.client.inspector().counts(&queue).await.unwrap().ready
}

/// Panics when it is asked for the values that it provides.
struct PanicsInProvides;

impl Layer for PanicsInProvides {
    fn provides(&self) -> Vec<DataKey> {
        panic!("boom in provides");
    }
}

#[test]
fn a_layer_that_panics_in_provides_is_an_error_of_the_build() {
    let builder = Worker::builder("redis://x").task_type::<Double>().layer(PanicsInProvides);
    let problem = builder.build().expect_err("no worker");
    assert!(problem.is_invalid() && problem.to_string().contains("boom in provides"), "{problem}");
}

on_both! {
    async fn a_submit_layer_that_panics_refuses_only_its_own_call(bench: Bench) {
        let client = bench.client_builder().layer(Hostile::default()).connect().await.unwrap();
        let calls = (0..MANY).map(|number| {
            if number % 1_000 == 999 { hostile("submit panics") } else { hostile("") }
        });
        let problem = client.submit_all(calls).await.unwrap_err();
        assert_eq!(problem.answers.len(), MANY);
        for (number, answer) in problem.answers.iter().enumerate() {
            match answer {
                Ok(_) => assert!(number % 1_000 != 999),
                Err(problem) => {
                    assert!(number % 1_000 == 999 && problem.is_refused(), "{problem}");
                    assert!(problem.to_string().contains("boom in submit"), "{problem}");
                }
            }
        }
        assert_eq!(ready(&bench).await, 9_990);
    }

    async fn a_submit_layer_that_never_returns_refuses_the_rest_after_the_submit_timeout(
        bench: Bench
    ) {
        let builder = bench.client_builder().submit_timeout(Duration::from_millis(300));
        let client = builder.layer(Hostile::default()).connect().await.unwrap();
        for how in ["submit hangs", "submit hangs with a bomb"] {
            let problem = client.submit(hostile(how)).await.unwrap_err();
            assert!(problem.is_refused(), "{problem}");
            assert!(problem.to_string().contains("did not return within 300ms"), "{problem}");
        }
        let begun = Instant::now();
        let calls = (0..MANY).map(|number| hostile(if number < 3 { "" } else { "submit hangs" }));
        let problem = client.submit_all(calls).await.unwrap_err();
        assert!(begun.elapsed() < SOON, "the submit did not wait 300 ms for each call");
        let accepted = problem.answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!((problem.answers.len(), accepted, ready(&bench).await), (MANY, 3, 3));
    }

    async fn layers_that_panic_or_hang_around_a_handler_end_their_own_attempt(bench: Bench) {
        let counts = Counts::default();
        let builder = bench.worker().concurrency(1).task_type::<Double>();
        let worker = bench.start(builder.layer(counts.clone()).layer(Hostile::default()));
        let cases = [
            ("before panics", Reason::Panicked),
            ("after panics", Reason::Panicked),
            ("before hangs", Reason::TimedOut),
            ("after hangs", Reason::TimedOut),
            ("before hangs with a bomb", Reason::TimedOut),
            ("after hangs with a bomb", Reason::TimedOut),
            ("before fails with a bomb", Reason::Failed),
            ("after fails with a bomb", Reason::Failed),
        ];
        for (how, reason) in cases {
            let handle = bench.client.submit(hostile(how)).await.unwrap();
            died_of(&handle, reason).await;
            runs_others(&bench).await;
        }
        worker.stop().await;
        assert_eq!(counts.0.hits(), 2 * cases.len() as u64, "each end arrives once");
    }

    async fn an_attempt_fails_whose_layer_returns_the_success_of_another_attempt(bench: Bench) {
        let successes = Successes::default();
        let builder = bench.worker().task_type::<Double>();
        let worker = bench.start(builder.layer(successes.clone()).layer(Swaps::default()));
        for error in ["kept", "the `Done` of another attempt"] {
            let handle = bench.client.submit(hostile("")).await.unwrap();
            died_of(&handle, Reason::Failed).await;
            let problem = handle.result().await.unwrap_err().to_string();
            assert!(problem.contains(error), "{problem}");
        }
        worker.stop().await;
        assert_eq!(successes.0.hits(), 0, "an outer layer was told of a success");
    }

    async fn a_layer_that_blocks_around_a_handler_ends_its_own_attempt(bench: Bench) {
        let hold = Hold::new();
        let builder = bench.worker().concurrency(2).task_type::<Double>();
        let worker = bench.start(builder.layer(Hostile(hold.clone())));
        let handle = bench.client.submit(hostile("before blocks")).await.unwrap();
        died_of(&handle, Reason::TimedOut).await;
        runs_others(&bench).await;
        hold.release();
        worker.stop().await;
    }

    async fn a_layer_that_does_not_return_from_an_end_frees_the_slot_and_stops_no_other_layer(
        bench: Bench
    ) {
        let counts = Counts::default();
        let builder = bench.worker().concurrency(1).task_type::<Double>();
        let builder = builder.layer(Hostile::default()).layer(counts.clone());
        let worker = bench.start(builder);
        for (number, how) in ["ended panics", "ended hangs with a bomb"].into_iter().enumerate() {
            let handle = bench.client.submit(hostile(how)).await.unwrap();
            assert_eq!(handle.result_within(SOON).await.unwrap(), 8);
            runs_others(&bench).await;
            counts.0.wait_for(2 * number as u64 + 2).await;
        }
        worker.stop().await;
    }

    async fn a_layer_that_blocks_at_an_end_keeps_one_slot(bench: Bench) {
        let hold = Hold::new();
        let builder = bench.worker().concurrency(2).task_type::<Double>();
        let worker = bench.start(builder.layer(Hostile(hold.clone())));
        let handle = bench.client.submit(hostile("ended blocks")).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 8);
        hold.arrivals().wait_for(1).await;
        for _ in 0..5 {
            runs_others(&bench).await;
        }
        hold.release();
        worker.stop().await;
    }
    async fn a_client_and_a_worker_end_although_the_drop_of_a_layer_blocks(bench: Bench) {
        let hold = Hold::new();
        let layer = || BlocksInDrop(hold.clone());
        let client = bench.client_builder().layer(layer()).connect().await.unwrap();
        let ended = timeout(SOON, spawn_blocking(move || drop(client))).await;
        hold.arrivals().wait_for(1).await;
        let worker = bench.start(bench.worker().task_type::<Double>().layer(layer()));
        runs_others(&bench).await;
        let stopped = timeout(SOON, worker.stop()).await;
        hold.arrivals().wait_for(2).await;
        hold.release();
        assert!(ended.is_ok(), "the drop of the client waited for the layer");
        assert!(stopped.is_ok(), "the worker waited for the layer");
    }
}
