//! Groups that are submitted again, refused, added to, or looked at after their end.

use std::{collections::HashSet, time::Duration};

use crate::common::{
    Bench, Gate,
    orders::{Log, Reserve, reserve},
    sums::{
        LoggedWorker, Note, Number, SOON, Way, becomes, builder, in_a_way, note, number, plus,
        plus_in_a_way, sum, sum_pages, unfinished,
    },
};
use optimus_core::{
    Backoff, BoxError, Call, Context, Due, Flow, GroupHandle, IntoFlow as _, Key,
    PrerequisiteFailure::{Cancel, Run},
    QueueName, StepHandle, Task, TaskId, TaskState,
    broker::Keep,
    group,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

fn new_id() -> TaskId {
    TaskId::new(QueueName::new("default").unwrap())
}

/// Adds members to its group, also in each of its attempts that fail.
#[derive(Serialize, Deserialize)]
struct Adder {}

impl Task for Adder {
    const NAME: &'static str = "adder";
    type Output = ();

    async fn run(self, ctx: Context) -> Result<(), BoxError> {
        let calls = (0..300).map(|n| {
            let call = note(&n.to_string());
            if n % 2 == 0 { call.queue("other") } else { call }
        });
        ctx.group().ok_or("it is not in a group")?.add(calls).await?;
        if ctx.attempt() < 5 { Err("again".into()) } else { Ok(()) }
    }
}

fn adder() -> Call<Adder> {
    let backoff = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };
    Adder {}.call().max_retry(5).backoff(backoff)
}

fn late<T: optimus_core::Task, In>(call: Call<T, In>) -> Call<T, In> {
    call.due(Due::In(Duration::from_secs(3600)))
}

/// Returns how many tasks of a queue are kept, also those that have ended without success.
async fn kept(bench: &Bench, queue: &str) -> u64 {
    let queue = QueueName::new(queue).unwrap();
    let counts = bench.client.inspector().counts(&queue).await.unwrap();
    counts.blocked
        + counts.ready
        + counts.working
        + counts.delayed
        + counts.retry
        + counts.dead
        + counts.cancelled
}

on_both! {
    async fn a_refused_flow_leaves_no_member_and_no_group(bench: Bench) {
        let owner = bench.client.submit(late(number(1)).biz_id("a")).await.unwrap();
        let id = new_id();
        let flow = |taken: bool| {
            let first = if taken { number(1).biz_id("a") } else { number(1) };
            let inner = |n: u64| {
                late(number(n)).then(group((0..5).map(plus))).then(sum).then(plus(1).queue("other"))
            };
            let members = group((0..3).map(inner)).id(id.clone());
            number(0).then(note("then")).then(first).then(members).then(sum).then(plus(1))
        };
        let problem = bench.client.submit_flow(flow(true)).await.unwrap_err();
        assert!(problem.is_duplicate(), "{problem}");
        assert_eq!(problem.task_ids(), [owner.id().clone()]);
        assert_eq!((kept(&bench, "default").await, kept(&bench, "other").await), (1, 0));
        let found = bench.client.group::<u64>(id.clone());
        assert!(found.progress().await.unwrap_err().is_forgotten());
        // The same id can be used once the biz id is free.
        let handle = bench.client.submit_flow(flow(false)).await.unwrap();
        assert_eq!(found.progress().await.unwrap().total, 3);
        handle.cancel().await.unwrap();
    }

    async fn a_group_is_the_same_with_arguments_of_another_size(bench: Bench) {
        let id = new_id();
        for bytes in [5_000, 4_000] {
            let text = "a".repeat(bytes);
            let members = group((0..1_100).map(|_| late(note(&text)))).id(id.clone());
            let handle = bench.client.submit_group(members).await.unwrap();
            assert_eq!(handle.progress().await.unwrap().total, 1_100);
        }
    }

    async fn a_step_of_a_member_is_remembered_as_long_as_its_group(bench: Bench) {
        let long = Duration::from_secs(30 * 24 * 3600);
        let members = group([late(number(1)).then(plus(1))]).id(new_id()).result_ttl(long);
        bench.client.submit_group(members).await.unwrap();
        let inspector = bench.client.inspector();
        let page = inspector.list("default", TaskState::Delayed, None, 2).await.unwrap();
        let first = inspector.get(&page.rows[0].id).await.unwrap().unwrap();
        assert_eq!(first.record.unwrap().unwrap().outcome_ttl, Some(long));
    }

    async fn each_task_of_a_flow_that_is_submitted_again_while_it_runs_runs_once(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        for round in 0..3 {
            let id = new_id();
            let flow = || {
                let name = move |n: u64, step: &str| note(&format!("{round} {n} {step}"));
                let member = move |n: u64| match n % 4 {
                    0 => name(n, "alone").into_flow(),
                    1 => name(n, "there").queue("other").into_flow(),
                    2 => name(n, "first").then(name(n, "last")).into_flow(),
                    _ => name(n, "first, there").queue("other").then(name(n, "last")).into_flow(),
                };
                group((0..400).map(member)).id(id.clone()).then(name(400, "callback"))
            };
            let mut handles = Vec::new();
            for _ in 0..5 {
                handles.push(bench.client.submit_flow(flow()).await.unwrap());
            }
            for handle in handles {
                handle.result_within(SOON).await.unwrap();
            }
        }
        logged.worker.stop().await;
        let (lines, mut seen) = (logged.log.lines(), HashSet::new());
        let twice: Vec<&String> = lines.iter().filter(|line| !seen.insert(*line)).collect();
        assert_eq!(twice, Vec::<&String>::new());
        assert_eq!(lines.len(), 3 * (400 + 200 + 1));
    }

    async fn a_handler_that_repeats_adds_each_member_once(bench: Bench) {
        let (log, gate) = (Log::default(), Gate::new());
        let worker = builder(&bench, &log, &gate).task_type::<Adder>();
        let worker = bench.start(worker.queues(["default", "other"]));
        let submitted = bench.client.submit_group(group([adder()])).await.unwrap();
        assert_eq!(submitted.ended().await.unwrap().done, 301);
        worker.stop().await;
        let (lines, mut seen) = (log.lines(), HashSet::new());
        let twice: Vec<&String> = lines.iter().filter(|line| !seen.insert(*line)).collect();
        assert_eq!(twice, Vec::<&String>::new());
        assert_eq!(lines.len(), 300);
    }

    async fn other_calls_under_the_id_of_a_group_are_refused(bench: Bench) {
        let id = new_id();
        let submit = async |calls: Vec<Call<Number>>| {
            bench.client.submit_group(group(calls).id(id.clone())).await
        };
        let first = submit((0..3).map(|n| late(number(n))).collect()).await.unwrap();
        let more = (0..4).map(|n| late(number(n))).collect();
        let fewer = (0..2).map(|n| late(number(n))).collect();
        let elsewhere = (0..3).map(|n| late(number(n)).queue("other")).collect();
        for others in [more, fewer, elsewhere] {
            let problem = submit(others).await.unwrap_err();
            let says = problem.to_string();
            assert!(problem.is_invalid() && says.contains("other calls"), "{says}");
        }
        let notes = group((0..3).map(|_| note("another task"))).id(id.clone());
        assert!(bench.client.submit_group(notes).await.unwrap_err().is_invalid());
        let chains = group((0..3).map(|n| number(n).then(plus(1)))).id(id.clone());
        assert!(bench.client.submit_group(chains).await.unwrap_err().is_invalid());
        assert_eq!(unfinished(&bench, "default").await, 3);
        assert_eq!(unfinished(&bench, "other").await, 0);
        let progress = first.progress().await.unwrap();
        assert_eq!((progress.total, progress.ended), (3, None));
        submit((0..3).map(|n| late(number(n + 10))).collect()).await.unwrap();
    }

    async fn an_added_member_has_the_same_effect_on_the_group_as_the_others(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        for (policy, ends) in [(Cancel, TaskState::Cancelled), (Run, TaskState::Success)] {
            let waits = group([late(number(1))]).on_member_failure(policy);
            let submitted = bench.client.submit_group(waits).await.unwrap();
            let found = bench.client.group::<u64>(submitted.id().clone());
            assert_eq!(found.progress().await.unwrap().on_member_failure, policy);
            found.add([number(1).then(plus_in_a_way(1, Way::Dies)).then(plus(1))]).await.unwrap();
            let reached = async || match found.progress().await.unwrap() {
                progress if policy == Cancel => progress.ended == Some(ends),
                progress => (progress.done, progress.cancelled, progress.ended) == (1, 1, None),
            };
            eventually("the failed member has its effect on the group", SOON, reached).await;
            found.cancel().await.unwrap();
        }
        logged.worker.stop().await;
    }

    async fn flows_are_added_from_any_thread(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let submitted = bench.client.submit_group(group([in_a_way(1, Way::Waits)])).await.unwrap();
        let found: GroupHandle<u64> = bench.client.group(submitted.id().clone());
        let flows: Vec<Flow<'static, u64>> = (0..3).map(|n| number(n).then(plus(1))).collect();
        let added = tokio::spawn(async move { found.add(flows).await }).await.unwrap();
        assert_eq!(added.unwrap(), 3);
        logged.gate.open.hit();
        assert_eq!(submitted.results().await.unwrap(), [1, 1, 2, 3]);
        logged.worker.stop().await;
    }

    async fn a_group_is_known_after_its_end_until_its_time_is_over(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let ttl = Duration::from_millis(1);
        let kept = bench.client.submit_group(group((0..3).map(number))).await.unwrap();
        let brief = group((0..3).map(number)).result_ttl(ttl);
        let gone = bench.client.submit_group(brief).await.unwrap();
        assert_eq!(kept.results().await.unwrap(), [0, 1, 2]);
        let found = bench.client.group::<u64>(kept.id().clone());
        assert_eq!(found.ended().await.unwrap().done, 3);
        assert_eq!(found.results().await.unwrap(), [0, 1, 2]);
        let problem = found.add([number(1)]).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
        found.cancel().await.unwrap();
        assert_eq!(found.progress().await.unwrap().ended, Some(TaskState::Success));
        // The maintenance of the queue removes the other one.
        let keep = Keep { age: Duration::from_secs(3600), ..Keep::DEFAULT };
        let queue = QueueName::new("default").unwrap();
        let forgotten = async || {
            bench.client.broker().purge(&queue, keep, Duration::from_secs(3600)).await.unwrap();
            gone.progress().await.is_err_and(|problem| problem.is_forgotten())
        };
        eventually("its time is over", SOON, forgotten).await;
        let gone = bench.client.group::<u64>(gone.id().clone());
        assert!(gone.ended().await.unwrap_err().is_forgotten());
        assert!(gone.add([number(1)]).await.unwrap_err().is_forgotten());
        assert!(gone.cancel().await.unwrap_err().is_forgotten());
        // A task that waits for it now learns that, as with any other unknown id.
        let late = bench.client.submit(note("late").after(gone.id())).await.unwrap();
        let why = bench.client.inspector().explain(late.id()).await.unwrap().to_string();
        assert!(why.contains("which was not submitted, or is no longer known"), "{why}");
        logged.worker.stop().await;
    }

    async fn a_group_of_no_members_is_a_step_and_a_member_like_any_other(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let empty = || group((0..0).map(number));
        let flow = number(1).then(empty()).then(sum).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 1);
        let members = (0..2).map(|_| empty().then(sum));
        let flow = group(members).on_member_failure(Run).then(sum_pages);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), (0, vec![]));
        let alone = bench.client.submit_group(empty()).await.unwrap();
        assert!(alone.add([number(1)]).await.unwrap_err().is_wrong_state());
        logged.worker.stop().await;
    }

    async fn nothing_of_a_flow_runs_whose_group_was_cancelled_before_it_was_stored(bench: Bench) {
        let logged = LoggedWorker::serving(&bench, ["default", "other"]);
        let (id, steps) = (new_id(), || group((0..3).map(plus)).then(sum));
        // The end of the flow alone, as a submit that is cut off leaves it.
        let end = || group([late(number(1)).then(plus(1))]).id(id.clone()).then(note("end"));
        bench.client.submit_flow(end()).await.unwrap();
        bench.client.group::<u64>(id.clone()).cancel().await.unwrap();
        let flow = note("first").queue("other").then(number(1)).then(steps()).then(note("then"));
        let handle = bench.client.submit_flow(flow.then(end())).await.unwrap();
        let [others @ .., _, _] = handle.steps() else { panic!("{handle:?}") };
        for step in others {
            match step {
                StepHandle::Group(group) => {
                    assert!(group.ended().await.unwrap_err().is_cancelled());
                }
                task => becomes(&bench, task.id(), TaskState::Cancelled).await,
            }
        }
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        assert_eq!(logged.log.lines(), Vec::<String>::new());
        logged.worker.stop().await;
    }

    async fn a_flow_that_waits_for_its_own_group_or_for_a_later_step_is_refused(bench: Bench) {
        let (id, far) = (new_id(), TaskId::new(QueueName::new("other").unwrap()));
        let last = new_id();
        let (own, ends) = (|| note("a").after(&id), || note("z").id(last.clone()));
        let outside = bench.client.submit(note("x").id(far.clone()).after(&id)).await.unwrap();
        let between = bench.client.submit(reserve("y").after(&outside)).await.unwrap();
        let waits_far = || note("a").after(Key::of::<Reserve>("y"));
        let members = |member: Call<Note>| group([note("0"), member]).id(id.clone());
        let all = group([note("0")]).id(id.clone()).after(&last);
        let deep = note("1").then(group([own()])).then(note("2"));
        let flows: [(Flow<'_, ()>, &[&TaskId]); 7] = [
            (members(waits_far()).then(ends()), &[between.id(), &far, &id]),
            (members(own()).then(ends()), &[&id]),
            (members(note("a").after(&last)).then(ends()), &[&last, &id]),
            (all.then(ends()), &[&last, &id]),
            (own().then(members(note("b"))).then(ends()), &[&id]),
            (note("a").after(&last).queue("other").then(note("b")).then(ends()), &[&last]),
            (group([deep]).id(id.clone()).then(ends()), &[&id]),
        ];
        for (at, (flow, path)) in flows.into_iter().enumerate() {
            let problem = bench.client.submit_flow(flow).await.unwrap_err();
            assert!(problem.is_cycle(), "{at}: {problem}");
            let found = problem.task_ids();
            assert!(path.iter().all(|id| found.contains(id)), "{at}: {problem}");
            let kept = (kept(&bench, "default").await, kept(&bench, "other").await);
            assert_eq!(kept, (1, 1), "{at}: only the tasks outside are kept");
        }
    }

    async fn an_added_member_that_waits_for_its_group_or_its_callback_is_refused(bench: Bench) {
        let flow = group([late(number(1))]).then(sum).then(note("z"));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let found = bench.client.group::<()>(handle.steps()[0].id().clone());
        // Only Redis knows what waits for the group.
        bench.client.submit(reserve("y").queue("other").after(handle.id())).await.unwrap();
        let far = Key::of::<Reserve>("y").queue("other");
        let [of_group, of_callback] = [found.id(), handle.id()].map(|id| note("a").after(id));
        for (at, member) in [of_group, of_callback, note("a").after(far)].into_iter().enumerate() {
            let problem = found.add([member]).await.unwrap_err();
            assert!(problem.is_cycle(), "{at}: {problem}");
            assert!(problem.task_ids().contains(found.id()), "{at}: {problem}");
        }
        assert_eq!(found.progress().await.unwrap().total, 1);
        found.cancel().await.unwrap();
    }
}
