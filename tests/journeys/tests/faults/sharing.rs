//! The division of a worker's slots between its queues.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use crate::common::{Bench, Gate, Wait};
use optimus_core::{BoxError, Context, DataKey, QueueName, Task};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

const SOON: Duration = Duration::from_secs(60);

/// The queues of the tasks that ran, in the order in which they began.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<String>>>);

impl Starts {
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Returns how many tasks of each queue are among these starts.
    fn counts(&self, from: usize, to: usize) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for queue in &self.0.lock().unwrap()[from..to] {
            *counts.entry(queue.clone()).or_default() += 1;
        }
        counts
    }
}

/// A task that takes some time, or none.
#[derive(Serialize, Deserialize)]
struct Start {
    ms: u64,
}

impl Task for Start {
    const NAME: &'static str = "start";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Starts>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let starts: Starts = ctx.data().unwrap();
        starts.0.lock().unwrap().push(ctx.id().queue().to_string());
        if self.ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.ms)).await;
        }
        Ok(())
    }
}

async fn submit(bench: &Bench, queue: &str, count: usize, ms: u64) {
    let calls = (0..count).map(|_| Start { ms }.call().queue(queue));
    bench.client.submit_all(calls).await.unwrap();
}

async fn working(bench: &Bench, queue: &str) -> u64 {
    let counts = bench.client.inspector().counts(&QueueName::new(queue).unwrap()).await;
    counts.unwrap().working
}

on_both! {
    async fn eight_light_queues_do_not_starve_a_heavy_one_that_is_listed_last(bench: Bench) {
        let lights: Vec<String> = (1..=8).map(|n| format!("light{n}")).collect();
        for light in &lights {
            submit(&bench, light, 100, 2).await;
        }
        submit(&bench, "heavy", 3_000, 2).await;
        let starts = Starts::default();
        let queues = lights.iter().map(|light| (light.as_str(), 1)).chain([("heavy", 100)]);
        let builder = bench.worker().weighted(queues).concurrency(16);
        let worker = bench.start(builder.task_type::<Start>().data(starts.clone()));
        eventually("most of the tasks began", SOON, async || starts.len() >= 2_200).await;
        let counts = starts.counts(40, 2_200);
        assert!((1_900..=2_100).contains(&counts["heavy"]), "{counts:?}");
        for light in &lights {
            assert!((14..=26).contains(&counts[light]), "the share is 20: {counts:?}");
        }
        worker.stop().await;
    }

    async fn queues_beyond_those_of_one_turn_are_served_in_the_next(bench: Bench) {
        let queues: Vec<String> = (0..60).map(|n| format!("q{n}")).collect();
        for queue in &queues {
            submit(&bench, queue, 100, 1).await;
        }
        let starts = Starts::default();
        let builder = bench.worker().queues(&queues).concurrency(32);
        let worker = bench.start(builder.task_type::<Start>().data(starts.clone()));
        eventually("half of the tasks began", SOON, async || starts.len() >= 3_000).await;
        let counts = starts.counts(0, 3_000);
        let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
        assert_eq!(counts.len(), queues.len(), "{counts:?}");
        assert!(*least >= 25 && *most <= 75, "the share of each queue is 50: {counts:?}");
        worker.stop().await;
    }

    async fn a_queue_of_long_tasks_leaves_the_others_their_slots(bench: Bench) {
        let gate = Gate::new();
        let calls = (0..40).map(|_| Wait {}.call().queue("slow"));
        let slow = bench.client.submit_all(calls).await.unwrap();
        submit(&bench, "quick", 3_000, 1).await;
        let starts = Starts::default();
        let builder = bench.worker().weighted([("slow", 1), ("quick", 3)]).concurrency(16);
        let builder = builder.task_type::<Start>().data(starts.clone());
        let worker = bench.start(builder.task_type::<Wait>().data(gate.clone()));
        eventually("some quick tasks began", SOON, async || starts.len() >= 1_000).await;
        assert_eq!(working(&bench, "slow").await, 4, "the long tasks have a quarter of the slots");
        eventually("all quick tasks began", SOON, async || starts.len() == 3_000).await;
        gate.began.wait_for(16).await;
        gate.open.hit();
        for handle in slow {
            handle.result_within(SOON).await.unwrap();
        }
        worker.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_queues_fill_four_thousand_slots_in_equal_parts() {
    let bench = Bench::on_memory().await;
    let gate = Gate::new();
    for queue in ["first", "second"] {
        let calls = (0..5_000).map(|_| Wait {}.call().queue(queue));
        bench.client.submit_all(calls).await.unwrap();
    }
    let builder = bench.worker().lease(SOON).queues(["first", "second"]).concurrency(4_096);
    let worker = bench.start(builder.task_type::<Wait>().data(gate.clone()));
    gate.began.wait_for(4_096).await;
    assert_eq!(working(&bench, "first").await, 2_048);
    gate.open.hit();
    worker.stop().await;
}
