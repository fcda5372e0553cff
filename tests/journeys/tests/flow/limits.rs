//! Limits and pauses: how many tasks start in a period or run at once, over all workers. A task
//! that waits for a limit holds no slot and no attempt.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{Bench, Double, Gate as Opening, Running, Wait};
use optimus_core::{
    BoxError, Call, Context, DataKey, Gate, Limit, Rate, Retry, Task, TaskHandle, TaskOptions,
    TaskState, WorkerId,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

const SOON: Duration = Duration::from_secs(20);
const HOUR: Duration = Duration::from_secs(3_600);
/// Two clocks are compared: that of Redis and that of this process.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Each start with its tenant.
#[derive(Clone, Default)]
struct Starts(Arc<Mutex<Vec<(Instant, u32)>>>);

impl Starts {
    fn note(&self, tenant: u32) {
        self.0.lock().unwrap().push((Instant::now(), tenant));
    }

    fn of(&self, wanted: impl Fn(u32) -> bool) -> Vec<Instant> {
        let all = self.0.lock().unwrap();
        all.iter().filter(|(_, tenant)| wanted(*tenant)).map(|(at, _)| *at).collect()
    }
}

/// Panics if a start came before the rate had a token for it. A start that is recorded late passes,
/// so the check does not depend on the speed of the machine.
fn assert_rate(since: Instant, mut starts: Vec<Instant>, rate: Rate) {
    starts.sort();
    for (number, at) in (0..).zip(starts) {
        let earliest = since + rate.interval() * number;
        assert!(at + TOLERANCE >= earliest, "start {number} is {:?} early", earliest - at);
    }
}

/// Records that it has started.
#[derive(Serialize, Deserialize)]
struct Knock {
    tenant: u32,
}

fn knock(tenant: u32) -> Call<Knock> {
    Knock { tenant }.call()
}

impl Task for Knock {
    const NAME: &'static str = "knock";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().rate(Rate::per_second(50))
    }

    fn required_data() -> Vec<DataKey> {
        vec![DataKey::of::<Starts>()]
    }

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        ctx.data::<Starts>().unwrap().note(self.tenant);
        Ok(())
    }
}

/// Only one of them starts in an hour.
#[derive(Serialize, Deserialize)]
struct Rare {}

impl Task for Rare {
    const NAME: &'static str = "rare";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().limit("rare").rate(Rate::per_hour(1))
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// At most one of them runs.
#[derive(Serialize, Deserialize)]
struct Single {}

impl Task for Single {
    const NAME: &'static str = "single";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().limit("door").max_working(1)
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

/// A call to a service that refuses one tenant at its first attempt.
#[derive(Serialize, Deserialize)]
struct Sync {
    is_refused: bool,
}

impl Task for Sync {
    const NAME: &'static str = "sync";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        if self.is_refused && ctx.attempt() == 1 {
            return Err(Retry::after(HOUR).pause_lane().because("429").into());
        }
        Ok(())
    }
}

fn start(bench: &Bench, starts: &Starts, slots: usize) -> Running {
    let worker = bench.worker().task_type::<Knock>().task_type::<Rare>().task_type::<Double>();
    let worker = worker.task_type::<Single>().task_type::<Sync>();
    bench.start(worker.data(starts.clone()).concurrency(slots))
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
    async fn a_rate_holds_over_three_workers(bench: Bench) {
        let starts = Starts::default();
        let workers: Vec<Running> = (0..3).map(|_| start(&bench, &starts, 8)).collect();
        let since = Instant::now();
        for handle in bench.client.submit_all((0..30).map(knock)).await.unwrap() {
            done(&handle).await;
        }
        assert_eq!(starts.of(|_| true).len(), 30);
        assert_rate(since, starts.of(|_| true), Rate::per_second(50));
        for worker in workers {
            worker.stop().await;
        }
    }

    async fn tasks_that_have_expired_use_no_token(bench: Bench) {
        let late = (0..3).map(|_| Rare {}.call().expires_in(Duration::from_millis(1)));
        bench.client.submit_all(late).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        let next = submit(&bench, Rare {}.call()).await;
        let worker = start(&bench, &Starts::default(), 1);
        done(&next).await;
        worker.stop().await;
    }

    async fn a_task_that_waits_for_a_limit_holds_no_slot_and_no_attempt(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 1);
        done(&submit(&bench, Rare {}.call()).await).await;
        let waiting = bench.client.submit_all((0..3).map(|_| Rare {}.call())).await.unwrap();
        becomes(&waiting[0], TaskState::Blocked).await;
        done(&submit(&bench, Double { number: 1 }.call()).await).await;
        let details = bench.client.inspector().get(waiting[0].id()).await.unwrap().unwrap();
        assert_eq!((details.failures, details.losses), (0, 0));
        let limits = bench.client.inspector().limits("default", 10).await.unwrap();
        let rare = limits.iter().find(|row| row.gate == Gate::Named("rare".into())).unwrap();
        assert_eq!((rare.waiting, rare.tokens, rare.is_set), (3, Some(0), false));
        assert_eq!(rare.limit.rate_limit(), Some(Rate::per_hour(1)));
        assert!(rare.next.is_some() && rare.shut.is_none(), "{rare:?}");
        assert!(bench.client.cancel(waiting[1].id()).await.is_ok());
        becomes(&waiting[1], TaskState::Cancelled).await;
        worker.stop().await;
    }

    async fn a_limit_that_changes_applies_to_the_tasks_that_wait(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 4);
        done(&submit(&bench, Rare {}.call()).await).await;
        let waiting = bench.client.submit_all((0..20).map(|_| Rare {}.call())).await.unwrap();
        becomes(&waiting[19], TaskState::Blocked).await;
        let rare = bench.client.limit("rare");
        rare.set(Limit::new().rate(Rate::per_second(1_000))).await.unwrap();
        for handle in &waiting {
            done(handle).await;
        }
        let now = rare.get().await.unwrap().unwrap();
        assert!(now.is_set && now.waiting == 0, "{now:?}");
        rare.set(Limit::new().rate(Rate::per_hour(1))).await.unwrap();
        let more = bench.client.submit_all((0..2).map(|_| Rare {}.call())).await.unwrap();
        becomes(&more[1], TaskState::Blocked).await;
        worker.stop().await;
    }

    async fn the_permit_of_a_worker_that_died_returns(bench: Bench) {
        let handles = bench.client.submit_all((0..2).map(|_| Single {}.call())).await.unwrap();
        let (broker, queue) = (bench.client.broker(), handles[0].id().queue());
        let (ghost, lease) = (WorkerId::generate("ghost", 1), Duration::from_millis(500));
        broker.register(queue, &ghost, lease, "{}").await.unwrap();
        assert_eq!(broker.claim(queue, &ghost, 1, 2).await.unwrap().grants.len(), 1);
        let worker = start(&bench, &Starts::default(), 4);
        for handle in &handles {
            done(handle).await;
        }
        let door = bench.client.limit("door").get().await.unwrap();
        assert!(door.is_none_or(|door| door.working == 0 && door.waiting == 0));
        worker.stop().await;
    }

    async fn a_tenant_whose_service_refuses_pauses_alone(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 4);
        let sync = |tenant: u32, is_refused| {
            Sync { is_refused }.call().lane(format!("tenant-{tenant}")).lane_width(4)
        };
        let refused = submit(&bench, sync(1, true)).await;
        becomes(&refused, TaskState::Retry).await;
        let held = submit(&bench, sync(1, false)).await;
        becomes(&held, TaskState::Blocked).await;
        for handle in bench.client.submit_all((0..5).map(|_| sync(2, false))).await.unwrap() {
            done(&handle).await;
        }
        assert_eq!(held.status().await.unwrap(), TaskState::Blocked);
        let tenant = bench.client.gate("default", Gate::Lane("tenant-1".into()));
        let shut = tenant.get().await.unwrap().unwrap().shut.unwrap();
        assert!(shut.until.is_some() && shut.why.contains("its lane pauses"), "{shut:?}");
        assert_eq!(shut.by, refused.id().to_string());
        tenant.resume().await.unwrap();
        done(&held).await;
        worker.stop().await;
    }

    async fn a_limit_that_a_worker_declares_is_listed_before_it_was_used(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 4);
        let inspector = bench.client.inspector();
        let is_there = async || !inspector.workers("default").await.unwrap().is_empty();
        eventually("the worker is there", SOON, is_there).await;
        let limits = inspector.limits("default", 10).await.unwrap();
        let row = |gate| limits.iter().find(|row| row.gate == gate).unwrap();
        let knock = row(Gate::Task("knock".into()));
        assert_eq!(knock.limit.rate_limit(), Some(Rate::per_second(50)));
        assert_eq!((knock.is_set, knock.tokens, knock.waiting), (false, Some(1), 0));
        let door = row(Gate::Named("door".into()));
        assert_eq!((door.limit.max_working_limit(), door.tokens), (Some(1), None));
        assert_eq!(bench.client.limit("door").get().await.unwrap().as_ref(), Some(door));
        worker.stop().await;
    }

    async fn a_change_of_a_limit_says_whether_a_task_with_it_is_known(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 4);
        let is_there = async || {
            !bench.client.inspector().workers("default").await.unwrap().is_empty()
        };
        eventually("the worker is there", SOON, is_there).await;
        let limit = Limit::new().max_working(2);
        let gate = |gate| bench.client.gate("default", gate);
        let lane = || Gate::Lane("tenant-1".into());
        for (gate, is_known) in [
            (gate(Gate::Task("knock".into())), true),
            (gate(Gate::Task("knokc".into())), false),
            (gate(Gate::Named("door".into())), true),
            (gate(Gate::Named("dor".into())), false),
            (gate(lane()), false),
            (gate(Gate::Queue), true),
            (bench.client.gate("nosuch", Gate::Queue), false),
        ] {
            let first = gate.set(limit).await.unwrap();
            let again = gate.set(limit).await.unwrap();
            let removed = gate.remove().await.unwrap();
            let sets = [first.was_set, again.was_set, removed.was_set];
            assert_eq!((first.is_known, sets), (is_known, [false, true, true]), "{gate:?}");
        }
        let text = gate(lane()).pause("ann", "").await.unwrap().to_string();
        assert_eq!(text, "has no task now; the change applies to later ones");
        let text = gate(Gate::Named("dor".into())).resume().await.unwrap().to_string();
        assert!(text.ends_with("is its name misspelt?"), "{text}");
        gate(lane()).pause("ann", "").await.unwrap();
        let of_lane = submit(&bench, Sync { is_refused: false }.call().lane("tenant-1")).await;
        becomes(&of_lane, TaskState::Blocked).await;
        assert!(gate(lane()).resume().await.unwrap().is_known);
        done(&of_lane).await;
        worker.stop().await;
    }

    async fn a_paused_task_name_and_a_paused_lane_wait_and_the_others_run(bench: Bench) {
        let worker = start(&bench, &Starts::default(), 4);
        let name = bench.client.gate("default", Gate::Task("double".into()));
        let lane = bench.client.gate("default", Gate::Lane("tenant-1".into()));
        name.pause("ann", "it charges twice").await.unwrap();
        lane.pause("bob", "their API is down").await.unwrap();
        let named = submit(&bench, Double { number: 1 }.call()).await;
        let of_lane = submit(&bench, Sync { is_refused: false }.call().lane("tenant-1")).await;
        becomes(&named, TaskState::Blocked).await;
        becomes(&of_lane, TaskState::Blocked).await;
        done(&submit(&bench, Sync { is_refused: false }.call().lane("tenant-2")).await).await;
        let limits = bench.client.inspector().limits("default", 10).await.unwrap();
        for (gate, by, why) in [
            (Gate::Task("double".into()), "ann", "it charges twice"),
            (Gate::Lane("tenant-1".into()), "bob", "their API is down"),
        ] {
            let row = limits.iter().find(|row| row.gate == gate).unwrap();
            let shut = row.shut.as_ref().unwrap();
            assert_eq!((&*shut.by, &*shut.why, shut.until), (by, why, None));
            assert_eq!(row.waiting, 1, "{gate}");
        }
        name.resume().await.unwrap();
        done(&named).await;
        assert_eq!(of_lane.status().await.unwrap(), TaskState::Blocked);
        lane.resume().await.unwrap();
        done(&of_lane).await;
        worker.stop().await;
    }

    async fn a_task_passes_the_limit_of_its_lane_and_the_one_of_all(bench: Bench) {
        let starts = Starts::default();
        let workers: Vec<Running> = (0..2).map(|_| start(&bench, &starts, 8)).collect();
        let (each, since) = (Rate::per_second(20), Instant::now());
        let of_tenant = |tenant| {
            (0..5).map(move |_| {
                knock(tenant).lane(format!("tenant-{tenant}")).lane_width(9).lane_rate(each)
            })
        };
        for handle in bench.client.submit_all((0..5).flat_map(of_tenant)).await.unwrap() {
            done(&handle).await;
        }
        assert_rate(since, starts.of(|_| true), Rate::per_second(50));
        for tenant in 0..5 {
            assert_eq!(starts.of(|of| of == tenant).len(), 5);
            assert_rate(since, starts.of(|of| of == tenant), each);
        }
        for worker in workers {
            worker.stop().await;
        }
    }

    async fn a_queue_has_a_limit_of_its_own(bench: Bench) {
        let queue = bench.client.gate("default", Gate::Queue);
        queue.set(Limit::new().max_working(2)).await.unwrap();
        let opening = Opening::new();
        let worker = bench.worker().task_type::<Wait>().data(opening.clone()).concurrency(8);
        let worker = bench.start(worker);
        let handles = bench.client.submit_all((0..4).map(|_| Wait {}.call())).await.unwrap();
        opening.began.wait_for(2).await;
        let row = queue.get().await.unwrap().unwrap();
        assert_eq!((row.working, row.limit.max_working_limit()), (2, Some(2)));
        opening.open.hit();
        for handle in &handles {
            done(handle).await;
        }
        worker.stop().await;
    }

    async fn a_permit_outside_tasks_counts_until_it_is_dropped(bench: Bench) {
        let door = bench.client.limit("door");
        door.set(Limit::new().max_working(1)).await.unwrap();
        let permit = door.acquire().await.unwrap();
        assert!(door.try_acquire().await.unwrap().is_none());
        let waits = door.clone().wait_at_most(Duration::from_millis(50));
        let problem = waits.acquire().await.unwrap_err();
        assert!(problem.is_timeout() && problem.to_string().contains("limit door"), "{problem}");
        let worker = start(&bench, &Starts::default(), 2);
        let task = submit(&bench, Single {}.call()).await;
        becomes(&task, TaskState::Blocked).await;
        assert!(!permit.is_lost());
        drop(permit);
        done(&task).await;
        door.acquire().await.unwrap().give_back().await;
        assert_eq!(door.get().await.unwrap().unwrap().working, 0);
        worker.stop().await;
    }

    async fn an_invalid_limit_is_refused(bench: Bench) {
        let door = bench.client.limit("door");
        for (limit, problem) in [
            (Limit::new(), "needs a rate or max_working"),
            (Limit::new().max_working(0), "max_working"),
            (Limit::new().rate(Rate::per_second(0)), "rate of 0"),
        ] {
            let error = door.set(limit).await.unwrap_err();
            assert!(error.is_invalid() && error.to_string().contains(problem), "{error}");
        }
        assert!(bench.client.limit("a b").get().await.unwrap_err().is_invalid());
        assert!(door.clone().queue("a b").get().await.unwrap_err().is_invalid());
        assert!(door.cost(0).acquire().await.unwrap_err().is_invalid());
        let knock = knock(1).lane_rate(Rate::per_second(1));
        assert!(bench.client.submit(knock).await.unwrap_err().is_invalid());
    }
}
