//! Full queues share the starts of a worker by weight, in every second after the first.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use optimus_core::{BoxError, Context, DataKey, Task};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

use crate::common::Bench;

const SOON: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// The times at which tasks began, with their queues.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<(Instant, usize)>>>);

/// Keeps its slot for this time.
#[derive(Serialize, Deserialize)]
struct Start {
    queue: usize,
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
        starts.0.lock().unwrap().push((Instant::now(), self.queue));
        tokio::time::sleep(Duration::from_millis(self.ms)).await;
        Ok(())
    }
}

/// A worker's slots, the duration of its tasks, and its queues.
struct Case {
    slots: usize,
    ms: u32,
    seconds: u32,
    weights: Vec<u32>,
}

/// The number of tasks of each queue that began in one second.
struct Second {
    begun: Vec<usize>,
    weights: Vec<u32>,
}

impl Second {
    fn all(&self) -> usize {
        self.begun.iter().sum()
    }

    fn share(&self, queue: usize) -> usize {
        self.all() * self.weights[queue] as usize / self.weights.iter().sum::<u32>() as usize
    }

    /// Returns the least and the most tasks that queues of this weight began, in percent of their
    /// share.
    fn percents(&self, weight: u32) -> (usize, usize) {
        let of = (0..self.weights.len()).filter(|queue| self.weights[*queue] == weight);
        let percents = of.map(|queue| 100 * self.begun[queue] / self.share(queue).max(1));
        percents.fold((usize::MAX, 0), |(least, most), it| (least.min(it), most.max(it)))
    }
}

impl Case {
    /// Returns eight queues of weight 1 and one of weight 100, which is listed last.
    fn nine(slots: usize, ms: u32, seconds: u32) -> Self {
        Self { slots, ms, seconds, weights: vec![1, 1, 1, 1, 1, 1, 1, 1, 100] }
    }

    /// Runs the queues, all of them full. Returns each second after the first.
    async fn seconds(&self) -> Vec<Second> {
        let bench = Bench::on_redis().await;
        let name = |queue: usize| format!("queue{queue}");
        let all = self.weights.iter().sum::<u32>() as usize;
        // These are one and a half times as many tasks as the slots can start.
        let most = self.slots * (1_500 * (self.seconds + 1) / self.ms) as usize;
        for (queue, weight) in self.weights.iter().enumerate() {
            let count = most * *weight as usize / all + self.slots;
            let start = || Start { queue, ms: self.ms.into() };
            let calls = (0..count).map(|_| start().call().queue(name(queue)));
            bench.client.submit_all(calls).await.unwrap();
        }
        let starts = Starts::default();
        let queues = (0..).map(name).zip(self.weights.iter().copied());
        let builder = bench.worker().weighted(queues).concurrency(self.slots);
        let worker = bench.start(builder.task_type::<Start>().data(starts.clone()));
        let first = || starts.0.lock().unwrap().first().copied();
        eventually("the first task begins", SOON, async || first().is_some()).await;
        let (began, _) = first().unwrap();
        tokio::time::sleep_until((began + SECOND * self.seconds).into()).await;
        let starts = std::mem::take(&mut *starts.0.lock().unwrap());
        worker.stop().await;
        let mut seconds: Vec<Second> = (1..self.seconds)
            .map(|_| Second { begun: vec![0; self.weights.len()], weights: self.weights.clone() })
            .collect();
        for (at, queue) in starts {
            let second = usize::try_from(at.duration_since(began).as_secs()).unwrap();
            if second > 0 && second <= seconds.len() {
                seconds[second - 1].begun[queue] += 1;
            }
        }
        seconds
    }
}

/// Checks each share, with a tolerance of a tenth of the share and of two tasks at the borders of a
/// second.
async fn shares_follow_weights(case: Case) {
    for (nth, second) in (2..).zip(case.seconds().await) {
        let ((least, most), (heavy, _)) = (second.percents(1), second.percents(100));
        println!(
            "{} slots, tasks of {} ms, second {nth}: {} began; the heavy queue had {heavy} % of \
             its share, the light ones {least} to {most} % of theirs, {}",
            case.slots,
            case.ms,
            second.all(),
            second.share(0),
        );
        for (queue, begun) in second.begun.iter().enumerate() {
            let (share, weight) = (second.share(queue), second.weights[queue]);
            assert!(
                begun.abs_diff(share) <= share / 10 + 2,
                "{} slots, second {nth}: queue {queue} of weight {weight} began {begun}, not \
                 {share}: {:?}",
                case.slots,
                second.begun
            );
        }
    }
}

async fn none_has_less_than_half_of_its_share(case: Case) {
    for (nth, second) in (2..).zip(case.seconds().await) {
        let (least, most) = second.percents(1);
        println!(
            "{} queues, {} slots, tasks of {} ms, second {nth}: {} began, {least} to {most} % of \
             the share of each, {}",
            case.weights.len(),
            case.slots,
            case.ms,
            second.all(),
            second.share(0),
        );
        assert!(least >= 50, "{:?}", second.begun);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_full_queues_share_16_slots_by_weight_in_every_second() {
    shares_follow_weights(Case::nine(16, 10, 4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_full_queues_share_256_slots_by_weight_in_every_second() {
    shares_follow_weights(Case::nine(256, 100, 4)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_full_queues_have_half_of_their_share_at_least_in_every_second() {
    let case = Case { slots: 64, ms: 20, seconds: 3, weights: vec![1; 200] };
    none_has_less_than_half_of_its_share(case).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn nine_full_queues_share_16_256_and_4096_slots_by_weight_in_every_second() {
        for (slots, ms) in [(16, 1), (16, 10), (256, 20), (256, 200), (4_096, 250), (4_096, 1_000)]
        {
            shares_follow_weights(Case::nine(slots, ms, 10)).await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "minutes; cargo xtask scale runs it"]
    async fn two_hundred_full_queues_have_half_of_their_share_at_least_in_every_second() {
        for (slots, ms) in [(16, 5), (64, 10), (4_096, 500)] {
            let case = Case { slots, ms, seconds: 10, weights: vec![1; 200] };
            none_has_less_than_half_of_its_share(case).await;
        }
    }
}
