//! The tasks of a lane run in order or a few at a time, also if some of them end, wait or are lost.

use std::time::Duration;

use crate::common::{
    Bench, Double, Gate, Running, Wait,
    steps::{Journal, Step, Verdict, step},
};
use optimus_core::{
    Backoff, BoxError, Call, CancelAnswer, Context, Counts, DataKey, Due, Fatal, LaneFailure,
    QueueName, Task, TaskHandle, TaskState, WorkerId,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const SOON: Duration = Duration::from_secs(20);

/// Dies until the gate is open.
#[derive(Serialize, Deserialize)]
struct Valve {}

impl Task for Valve {
    const NAME: &'static str = "valve";
    type Output = ();

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Gate>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let gate: Gate = ctx.data().unwrap();
        if gate.open.hits() > 0 { Ok(()) } else { Err(Fatal::new("the gate is shut").into()) }
    }
}

/// Returns the lane that its context has.
#[derive(Serialize, Deserialize)]
struct WhichLane {}

impl Task for WhichLane {
    const NAME: &'static str = "which_lane";
    type Output = Option<String>;

    async fn run(self, ctx: Context) -> Result<Option<String>, BoxError> {
        Ok(ctx.lane().map(str::to_owned))
    }
}

/// A worker with the data of its tasks.
struct LoggedWorker {
    worker: Running,
    journal: Journal,
    gate: Gate,
}

impl LoggedWorker {
    fn of(bench: &Bench, slots: usize) -> Self {
        let (journal, gate) = (Journal::new(), Gate::new());
        let worker = start(bench, &journal, &gate, slots);
        Self { worker, journal, gate }
    }
}

fn start(bench: &Bench, journal: &Journal, gate: &Gate, slots: usize) -> Running {
    let worker = bench.worker().task_type::<Step>().task_type::<Wait>().task_type::<Valve>();
    let worker = worker.task_type::<Double>().task_type::<WhichLane>();
    bench.start(worker.data(journal.clone()).data(gate.clone()).concurrency(slots))
}

async fn counts(bench: &Bench) -> Counts {
    bench.client.inspector().counts(&QueueName::new("default").unwrap()).await.unwrap()
}

async fn submit<T: Task>(bench: &Bench, call: Call<T>) -> TaskHandle<T::Output> {
    bench.client.submit(call).await.unwrap()
}

async fn becomes<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>, state: TaskState) {
    let is_there = async || handle.status().await.unwrap() == state;
    eventually(&format!("it is {state}"), SOON, is_there).await;
}

async fn done<T: DeserializeOwned + 'static>(handle: &TaskHandle<T>) {
    drop(handle.result_within(SOON).await.unwrap());
}

on_both! {
    async fn each_lane_runs_in_order_through_failures_over_several_workers(bench: Bench) {
        let (journal, gate) = (Journal::new(), Gate::new());
        let workers: Vec<Running> = (0..3).map(|_| start(&bench, &journal, &gate, 4)).collect();
        let of_lane = |lane: u32| (0..15).map(move |number| {
            let (fails, dies) = (u32::from(number % 7 == lane % 7), number % 10 == lane);
            Step { lane, number, fails, dies }.call()
        });
        let handles = bench.client.submit_all((0..8).flat_map(of_lane)).await.unwrap();
        for handle in &handles {
            drop(handle.result_within(SOON).await);
        }
        let verdict = Verdict::of(&journal.lines().await);
        assert_eq!(verdict.problems, [""; 0]);
        assert_eq!((verdict.reruns, verdict.ended), (0, 8 * 15));
        for worker in workers {
            worker.stop().await;
        }
    }

    async fn tenants_with_few_tasks_start_in_the_first_turns_next_to_one_with_many(bench: Bench) {
        let many = (0..1_000).map(|number| step(0, number));
        bench.client.submit_all(many).await.unwrap();
        let few = (1..=10).flat_map(|tenant| (0..10).map(move |number| step(tenant, number)));
        bench.client.submit_all(few).await.unwrap();
        assert_eq!((counts(&bench).await.ready, counts(&bench).await.blocked), (11, 1_089));
        let logged = LoggedWorker::of(&bench, 16);
        eventually("the first have run", SOON, async || logged.journal.len().await >= 200).await;
        let first: Vec<String> = logged.journal.begun().await.into_iter().take(2 * 16).collect();
        for tenant in 1..=10 {
            assert!(first.contains(&format!("{tenant} 0")), "tenant {tenant} waits: {first:?}");
        }
        logged.worker.stop().await;
    }

    async fn a_delayed_task_takes_its_place_when_it_is_due(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let holder = submit(&bench, Wait {}.call().lane("lane-1")).await;
        logged.gate.began.wait_for(1).await;
        let far = submit(&bench, step(1, 7).due(Due::In(SOON * 100))).await;
        let delayed = submit(&bench, step(1, 2).due(Due::In(Duration::from_millis(200)))).await;
        submit(&bench, step(1, 0)).await;
        submit(&bench, step(1, 1)).await;
        becomes(&delayed, TaskState::Blocked).await;
        let last = submit(&bench, step(1, 3)).await;
        assert_eq!(last.status().await.unwrap(), TaskState::Blocked);
        logged.gate.open.hit();
        done(&last).await;
        assert_eq!(logged.journal.begun().await, ["1 0", "1 1", "1 2", "1 3"]);
        assert_eq!(far.status().await.unwrap(), TaskState::Delayed);
        done(&holder).await;
        logged.worker.stop().await;
    }

    async fn after_a_dead_task_a_lane_continues_unless_it_says_block(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let dead = submit(&bench, Valve {}.call().lane("lane-1")).await;
        done(&submit(&bench, step(1, 0)).await).await;
        assert_eq!(dead.status().await.unwrap(), TaskState::Dead);

        let blocks = || Valve {}.call().lane("lane-2").on_lane_failure(LaneFailure::Block);
        let (first, second) = (submit(&bench, blocks()).await, submit(&bench, blocks()).await);
        let third = submit(&bench, step(2, 0)).await;
        becomes(&first, TaskState::Dead).await;
        done(&submit(&bench, Double { number: 1 }.call()).await).await;
        assert_eq!(second.status().await.unwrap(), TaskState::Blocked);
        bench.client.delete(first.id()).await.unwrap();
        becomes(&second, TaskState::Dead).await;
        assert_eq!(third.status().await.unwrap(), TaskState::Blocked);
        logged.gate.open.hit();
        bench.client.requeue(second.id()).await.unwrap();
        done(&third).await;
        assert_eq!(second.status().await.unwrap(), TaskState::Success);
        logged.worker.stop().await;
    }

    async fn a_waiting_task_that_is_cancelled_leaves_its_lane(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let holder = submit(&bench, Wait {}.call().lane("lane-1")).await;
        logged.gate.began.wait_for(1).await;
        let unwanted = submit(&bench, step(1, 0)).await;
        let last = submit(&bench, step(1, 1)).await;
        assert_eq!(bench.client.cancel(unwanted.id()).await.unwrap(), CancelAnswer::Cancelled);
        assert_eq!(unwanted.status().await.unwrap(), TaskState::Cancelled);
        logged.gate.open.hit();
        done(&last).await;
        assert_eq!(logged.journal.begun().await, ["1 1"]);
        done(&holder).await;
        logged.worker.stop().await;
    }

    async fn a_running_task_that_is_cancelled_passes_its_lane_on(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let holder = submit(&bench, Wait {}.call().lane("lane-1")).await;
        logged.gate.began.wait_for(1).await;
        let next = submit(&bench, step(1, 0)).await;
        bench.client.cancel(holder.id()).await.unwrap();
        done(&next).await;
        assert_eq!(holder.status().await.unwrap(), TaskState::Cancelled);
        logged.worker.stop().await;
    }

    async fn a_lane_is_cancelled_whole_and_no_other_task(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let holder = submit(&bench, Wait {}.call().lane("lane-1")).await;
        logged.gate.began.wait_for(1).await;
        let waiting: Vec<_> = (0..300).map(|at| step(1, at)).collect();
        let waiting = bench.client.submit_all(waiting).await.unwrap();
        let other = submit(&bench, step(2, 0)).await;

        let done = bench.client.cancel_lane("default", "lane-1").await.unwrap();
        assert_eq!((done.cancelled, done.asked_to_stop), (300, 1));
        becomes(&holder, TaskState::Cancelled).await;
        for task in [&waiting[0], &waiting[299]] {
            assert_eq!(task.status().await.unwrap(), TaskState::Cancelled);
        }
        self::done(&other).await;
        assert_eq!(logged.journal.begun().await, ["2 0"], "no other task of the lane started");

        let again = bench.client.cancel_lane("default", "lane-1").await.unwrap();
        assert_eq!((again.cancelled, again.asked_to_stop), (0, 0));
        logged.worker.stop().await;
    }

    async fn an_operator_finds_the_lanes_in_which_tasks_wait_and_for_which_task(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let (inspector, queue) =
            (bench.client.inspector(), QueueName::new("default").unwrap());
        assert_eq!(inspector.lanes(&queue, 10).await.unwrap(), []);
        let stuck = Valve {}.call().lane("user 7").on_lane_failure(LaneFailure::Block);
        let stuck = submit(&bench, stuck).await;
        becomes(&stuck, TaskState::Dead).await;
        let waiting: Vec<_> = (0..3).map(|_| Valve {}.call().lane("user 7")).collect();
        let handles = bench.client.submit_all(waiting).await.unwrap();
        let lanes = inspector.lanes(&queue, 10).await.unwrap();
        let [lane] = &lanes[..] else { panic!("{lanes:?}") };
        assert_eq!((&*lane.key, lane.waiting), ("user 7", 3));
        assert_eq!(lane.holders, [stuck.id().clone()]);
        assert!(lane.since.timestamp_millis() > 0);
        let page = inspector.list(&queue, TaskState::Blocked, None, 10).await.unwrap();
        let mut listed: Vec<_> = page.rows.iter().map(|row| row.id.clone()).collect();
        listed.sort();
        assert!(listed.iter().eq(handles.iter().map(TaskHandle::id)), "{listed:?}");
        assert!(inspector.lanes(&queue, 0).await.unwrap_err().is_invalid());
        logged.gate.open.hit();
        bench.client.delete(stuck.id()).await.unwrap();
        for handle in &handles {
            done(handle).await;
        }
        assert_eq!(inspector.lanes(&queue, 10).await.unwrap(), []);
        logged.worker.stop().await;
    }

    async fn a_lane_of_two_runs_two_at_once(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 8);
        let calls = (0..6).map(|_| Wait {}.call().lane("wide").lane_width(2));
        let handles = bench.client.submit_all(calls).await.unwrap();
        logged.gate.began.wait_for(2).await;
        done(&submit(&bench, Double { number: 1 }.call()).await).await;
        let counts = counts(&bench).await;
        assert_eq!((counts.working, counts.ready, counts.blocked), (2, 0, 4));
        assert_eq!(logged.gate.began.hits(), 2);
        logged.gate.open.hit();
        for handle in &handles {
            done(handle).await;
        }
        logged.worker.stop().await;
    }

    async fn a_lane_of_two_continues_while_two_of_its_tasks_wait_for_their_retries(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 4);
        let late = Backoff::Fixed { wait: SOON * 100, jitter: 0.0 };
        let wide = |number, fails| {
            let step = Step { lane: 1, number, fails, dies: false }.call();
            step.lane_width(2).backoff(late)
        };
        let calls = [wide(0, 1), wide(1, 1), wide(2, 0), wide(3, 0)];
        let handles = bench.client.submit_all(calls).await.unwrap();
        done(&handles[2]).await;
        done(&handles[3]).await;
        for failed in &handles[..2] {
            becomes(failed, TaskState::Retry).await;
        }
        logged.worker.stop().await;
    }

    async fn an_operator_changes_the_width_of_a_lane_while_its_tasks_run(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 8);
        let calls = (0..6).map(|_| Wait {}.call().lane("shop"));
        let handles = bench.client.submit_all(calls).await.unwrap();
        logged.gate.began.wait_for(1).await;
        let shop = bench.client.lane("default", "shop");
        let answer = shop.set_width(4).await.unwrap();
        assert_eq!((answer.has_tasks, answer.before), (true, None));
        logged.gate.began.wait_for(4).await;
        assert_eq!((counts(&bench).await.working, counts(&bench).await.blocked), (4, 2));
        assert_eq!(shop.set_width(2).await.unwrap().before, Some(4));
        assert_eq!(shop.width().await.unwrap(), Some(2));
        let lanes = bench.client.inspector().lanes("default", 9).await.unwrap();
        assert_eq!(lanes[0].width_set.map(u16::from), Some(2));
        assert_eq!((lanes[0].holders.len(), lanes[0].waiting), (4, 2), "nothing is taken back");
        logged.gate.open.hit();
        for handle in &handles {
            done(handle).await;
        }
        assert_eq!(shop.reset_width().await.unwrap().before, Some(2));
        assert_eq!(shop.width().await.unwrap(), None);
        logged.worker.stop().await;
    }

    async fn a_lane_that_was_set_to_one_is_in_order(bench: Bench) {
        bench.client.lane("default", "lane-1").set_width(1).await.unwrap();
        let logged = LoggedWorker::of(&bench, 8);
        let fails = |number| u32::from(number % 3 == 0);
        let wide = |number| {
            Step { lane: 1, number, fails: fails(number), dies: false }.call().lane_width(5)
        };
        let handles = bench.client.submit_all((0..12).map(wide)).await.unwrap();
        for handle in &handles {
            done(handle).await;
        }
        let verdict = Verdict::of(&logged.journal.lines().await);
        assert_eq!(verdict.problems, [""; 0]);
        logged.worker.stop().await;
    }

    async fn a_lost_worker_gives_the_head_of_a_lane_back_to_its_front(bench: Bench) {
        let (broker, queue) = (bench.client.broker(), QueueName::new("default").unwrap());
        let calls = (0..3).map(|number| step(1, number));
        let handles = bench.client.submit_all(calls).await.unwrap();
        let (ghost, lease) = (WorkerId::generate("ghost", 1), Duration::from_secs(1));
        broker.register(&queue, &ghost, lease, "{}").await.unwrap();
        let claimed = broker.claim(&queue, &ghost, 1, 10).await.unwrap();
        assert_eq!(claimed.grants.len(), 1, "a lane offers one");
        let logged = LoggedWorker::of(&bench, 4);
        for handle in &handles {
            done(handle).await;
        }
        assert_eq!(logged.journal.begun().await, ["1 0", "1 1", "1 2"]);
        let lost = crate::common::view(&bench, handles[0].id()).await;
        assert!(lost.summary.unwrap().starts_with("step 2 "), "its second attempt");
        logged.worker.stop().await;
    }

    async fn a_lane_belongs_to_a_queue(bench: Bench) {
        let (journal, gate) = (Journal::new(), Gate::new());
        let worker = bench.worker().queues(["default", "other"]);
        let worker = worker.task_type::<Wait>().task_type::<Step>();
        let worker = bench.start(worker.data(journal.clone()).data(gate.clone()));
        let holder = submit(&bench, Wait {}.call().lane("lane-1")).await;
        gate.began.wait_for(1).await;
        done(&submit(&bench, step(1, 0).queue("other")).await).await;
        gate.open.hit();
        done(&holder).await;
        worker.stop().await;
    }

    async fn a_handler_knows_its_lane(bench: Bench) {
        let logged = LoggedWorker::of(&bench, 2);
        let call = || WhichLane {}.call().lane("user 7");
        let lane = submit(&bench, call()).await.result_within(SOON).await.unwrap();
        assert_eq!(lane.as_deref(), Some("user 7"));
        assert_eq!(call().perform_inline().await.unwrap().as_deref(), Some("user 7"));
        let none = submit(&bench, WhichLane {}.call()).await.result_within(SOON).await.unwrap();
        assert_eq!(none, None);
        logged.worker.stop().await;
    }
}

#[tokio::test]
async fn an_invalid_lane_is_refused_before_anything_is_sent() {
    let bench = Bench::on_memory().await;
    let shop = bench.client.lane("default", "shop").set_width(0).await.unwrap_err();
    assert!(shop.is_invalid() && shop.to_string().contains("pause the lane"), "{shop}");
    let empty = bench.client.lane("default", "").set_width(1).await.unwrap_err();
    assert!(empty.is_invalid() && empty.to_string().contains("is empty"), "{empty}");
    let call = || Double { number: 1 }.call();
    for (call, remedy) in [
        (call().lane(""), "empty"),
        (call().lane("a\tb"), "control character"),
        (call().lane("x".repeat(513)), "at most 512"),
        (call().lane("a").lane_width(0), "at least 1"),
        (call().lane_width(2), "set .lane(…)"),
        (call().on_lane_failure(LaneFailure::Block), "set .lane(…)"),
    ] {
        let problem = bench.client.submit(call).await.unwrap_err();
        assert!(problem.is_invalid(), "{problem}");
        let text = problem.to_string();
        assert!(text.contains("\"double\"") && text.contains(remedy), "{text}");
    }
    assert_eq!(counts(&bench).await, Counts::default());
}

#[test]
fn the_check_of_a_journal_finds_overtaking_and_overlap() {
    let of = |lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let Verdict { problems, reruns, ended } = Verdict::of(&lines);
        (problems.len(), reruns, ended)
    };
    let plain = ["begins 1 0", "ends 1 0", "begins 2 0", "begins 1 1", "ends 1 1", "ends 2 0"];
    assert_eq!(of(&plain), (0, 0, 3));
    assert_eq!(of(&["begins 1 0", "fails 1 0", "begins 1 0", "ends 1 0"]), (0, 0, 1));
    assert_eq!(of(&["begins 1 0", "begins 1 0", "ends 1 0"]), (0, 1, 1));
    assert_eq!(of(&["begins 1 0", "ends 1 0", "begins 1 0", "ends 1 0"]), (0, 1, 1));
    assert_eq!(of(&["begins 1 0", "begins 1 1"]), (1, 0, 0), "overlap");
    assert_eq!(of(&["begins 1 1"]), (1, 0, 0), "overtaking");
    assert_eq!(of(&["begins 1 0", "fails 1 0", "begins 1 1"]), (1, 0, 0), "overtaking a retry");
    let late = ["begins 1 0", "ends 1 0", "begins 1 1", "begins 1 0"];
    assert_eq!(of(&late), (1, 0, 1), "a second run during the next step");
}
