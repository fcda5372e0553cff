//! Chains: tasks that run one after the other and hand their results on, with each end of a step.

use std::time::Duration;

use crate::common::{
    Bench,
    sums::{
        LoggedWorker, SOON, Way, becomes, fill, in_a_way, length, note, number, plus,
        plus_in_a_way, sum, unfinished,
    },
};
use optimus_core::{
    Backoff, BoxError, Due, Layer, PrerequisiteFailure, StepHandle, Submission, TaskState, group,
};

const NOW: Backoff = Backoff::Fixed { wait: Duration::from_millis(1), jitter: 0.0 };

/// Adds a header to each call.
struct Stamps;

impl Layer for Stamps {
    async fn submit(&self, call: &mut Submission) -> Result<(), BoxError> {
        call.set_header("stamp", "seen");
        Ok(())
    }
}

on_both! {
    async fn each_step_takes_the_result_of_the_one_before_it(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = number(1).then(plus(10)).then(plus(100));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 111);
        assert_eq!(handle.steps().len(), 3);
        let text = fill(7).then(length);
        let handle = bench.client.submit_flow(text).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
        logged.worker.stop().await;
    }

    async fn a_spawned_task_submits_any_flow(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let client = bench.client.clone();
        let submits = tokio::spawn(async move {
            let chain = client.submit_flow(number(1).then(plus(10))).await.unwrap();
            let members: Vec<_> = (0..3).map(|index| number(index).then(plus(1))).collect();
            let group = client.submit_flow(group(members)).await.unwrap();
            let calls = client.submit_flow(number(7)).await.unwrap();
            (chain, group, calls)
        });
        let (chain, group, call) = submits.await.unwrap();
        assert_eq!(chain.result_within(SOON).await.unwrap(), 11);
        group.result_within(SOON).await.unwrap();
        assert_eq!(call.result_within(SOON).await.unwrap(), 7);
        logged.worker.stop().await;
    }

    async fn a_whole_call_only_waits_for_the_step_before_it(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Waits).then(note("second")).then(number(3)).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        logged.gate.began.wait_for(1).await;
        assert_eq!(unfinished(&bench, "default").await, 4);
        assert!(logged.log.lines().is_empty());
        logged.gate.open.hit();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 4);
        assert_eq!(logged.log.lines(), ["second"]);
        logged.worker.stop().await;
    }

    async fn steps_in_several_queues_hand_their_results_on(bench: Bench) {
        let here = LoggedWorker::serving(&bench, ["default"]);
        let there = LoggedWorker::serving(&bench, ["other"]);
        let flow = number(1).then(plus(10).queue("other")).then(plus(100)).then(plus(1000));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 1111);
        here.worker.stop().await;
        there.worker.stop().await;
    }

    async fn a_large_result_is_handed_on_within_a_queue_and_to_another_one(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        for queue in ["default", "other"] {
            for bytes in [10_000, 20_000, 1_000_000] {
                let step = optimus_core::given(|| length(String::new())).take::<0>().queue(queue);
                let handle = bench.client.submit_flow(fill(bytes).then(step)).await.unwrap();
                assert_eq!(handle.result_within(SOON).await.unwrap(), bytes as u64);
            }
        }
        logged.worker.stop().await;
    }

    async fn every_step_keeps_the_options_of_its_call(bench: Bench) {
        let step = plus(1).queue("other").max_retry(3).header("tenant", "acme").priority(7);
        let step = step.lane("a").due(Due::In(Duration::from_millis(1)));
        let flow = number(1).header("tenant", "other").then(step);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let inspector = bench.client.inspector();
        let task = inspector.get(handle.id()).await.unwrap().unwrap();
        let record = task.record.unwrap().unwrap();
        assert_eq!((record.max_retry, record.priority), (3, 7));
        assert_eq!(record.headers.get("tenant").unwrap(), "acme");
        assert_eq!(record.lane.unwrap().key, "a");
        assert_eq!(handle.id().queue().as_str(), "other");
        let logged = LoggedWorker::of(&bench);
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
        logged.worker.stop().await;
    }

    async fn a_step_that_fails_once_takes_its_argument_again(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = number(1).then(plus_in_a_way(5, Way::Fails).max_retry(1).backoff(NOW));
        let handle = bench.client.submit_flow(flow.then(plus(1))).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
        logged.worker.stop().await;
    }

    async fn a_dead_step_is_named_and_its_requeue_finishes_the_flow(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = number(1).then(plus_in_a_way(5, Way::Dies)).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead() && problem.to_string().contains("step 2 of 3"), "{problem}");
        assert_eq!(problem.attempt_error().unwrap().message, "no number");
        assert_eq!(problem.task_ids(), [handle.steps()[1].id().clone()]);
        becomes(&bench, handle.id(), TaskState::Blocked).await;
        logged.gate.open.hit();
        bench.client.requeue(handle.steps()[1].id()).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
        logged.worker.stop().await;
    }

    async fn with_cancel_the_steps_after_a_dead_one_are_cancelled(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Dies).then(plus(1)).then(plus(1));
        let flow = flow.on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead() && problem.to_string().contains("step 1 of 3"), "{problem}");
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        becomes(&bench, handle.steps()[1].id(), TaskState::Cancelled).await;
        logged.worker.stop().await;
    }

    async fn a_whole_call_may_run_although_the_step_before_it_is_dead(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let clean_up = note("cleaned up").on_prerequisite_failure(PrerequisiteFailure::Run);
        let handle = in_a_way(1, Way::Dies).then(clean_up);
        let handle = bench.client.submit_flow(handle).await.unwrap();
        handle.result_within(SOON).await.unwrap();
        assert_eq!(logged.log.lines(), ["cleaned up"]);
        logged.worker.stop().await;
    }

    async fn a_cancelled_flow_runs_no_further_step(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = number(1).then(in_a_way(2, Way::Waits)).then(note("never"));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        logged.gate.began.wait_for(1).await;
        handle.cancel().await.unwrap();
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        logged.gate.open.hit();
        handle.cancel().await.unwrap();
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        assert!(logged.log.lines().is_empty());
        logged.worker.stop().await;
    }

    async fn a_biz_id_that_is_taken_leaves_nothing_of_the_flow(bench: Bench) {
        let owner = bench.client.submit(number(1).biz_id("a")).await.unwrap();
        for place in 0..2 {
            let first = if place == 0 { number(1).biz_id("a") } else { number(1) };
            let last = if place == 1 { number(1).biz_id("a") } else { number(1) };
            let flow = first.then(plus(1)).then(last).then(plus(1).queue("other"));
            let problem = bench.client.submit_flow(flow).await.unwrap_err();
            assert!(problem.is_duplicate(), "{problem}");
            assert_eq!(problem.task_ids(), [owner.id().clone()]);
            assert_eq!(unfinished(&bench, "default").await, 1);
            assert_eq!(unfinished(&bench, "other").await, 0);
        }
    }

    async fn a_step_that_can_not_be_stored_is_refused_and_nothing_is_stored(bench: Bench) {
        let runs = plus(1).on_prerequisite_failure(PrerequisiteFailure::Run);
        let refused = [
            (number(1).then(runs), "can't run if that fails"),
            (number(1).priority(101).then(plus(1)), "priority"),
            (number(1).then(plus(1).queue("a b")), "a b"),
        ];
        for (flow, says) in refused {
            let problem = bench.client.submit_flow(flow).await.unwrap_err();
            assert!(problem.is_invalid() && problem.to_string().contains(says), "{problem}");
        }
        assert_eq!(unfinished(&bench, "default").await, 0);
    }

    async fn layers_see_each_step(bench: Bench) {
        let client = bench.client_builder().layer(Stamps).connect().await.unwrap();
        let handle = client.submit_flow(number(1).then(plus(1)).then(plus(1))).await.unwrap();
        for step in handle.steps() {
            let StepHandle::Task(task) = step else { panic!("a task") };
            let task = bench.client.inspector().get(task.id()).await.unwrap().unwrap();
            let record = task.record.unwrap().unwrap();
            assert_eq!(record.headers.get("stamp").unwrap(), "seen");
        }
    }

    async fn a_flow_is_a_step_of_another_flow(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let inner = plus(10).then(plus(100));
        let flow = number(1).then(inner).then(number(5).then(plus(2))).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 8);
        logged.worker.stop().await;
    }

    async fn a_step_whose_delay_is_not_over_waits_for_both(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let late = plus(1).due(Due::In(Duration::from_secs(3600)));
        let handle = bench.client.submit_flow(number(1).then(late)).await.unwrap();
        becomes(&bench, handle.id(), TaskState::Delayed).await;
        logged.worker.stop().await;
    }

    async fn a_flow_and_a_group_wait_for_what_they_are_submitted_after(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let import = bench.client.submit(in_a_way(1, Way::Waits)).await.unwrap();
        logged.gate.began.wait_for(1).await;
        let chain = number(1).then(plus(10)).after(&import);
        let chain = bench.client.submit_flow(chain).await.unwrap();
        let members = [note("a").queue("other"), note("b")];
        let notes = bench.client.submit_group(group(members).after(&import)).await.unwrap();
        let later = group([note("c")]).then(note("last")).after(&chain).after(&notes);
        let later = bench.client.submit_flow(later).await.unwrap();
        becomes(&bench, chain.steps()[0].id(), TaskState::Blocked).await;
        let why = bench.client.inspector().explain(notes.id()).await.unwrap().to_string();
        assert!(why.contains(&format!("it waits until {} has succeeded", import.id())), "{why}");
        assert_eq!(unfinished(&bench, "default").await + unfinished(&bench, "other").await, 7);
        assert!(logged.log.lines().is_empty());
        logged.gate.open.hit();
        assert_eq!(chain.result_within(SOON).await.unwrap(), 11);
        notes.results().await.unwrap();
        later.result_within(SOON).await.unwrap();
        let lines = logged.log.lines();
        assert_eq!((lines.len(), &lines[2..]), (4, &["c".to_owned(), "last".to_owned()][..]));
        logged.worker.stop().await;
    }

    async fn a_group_without_members_hands_its_wait_on(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let none = || group((0..0).map(number));
        let import = bench.client.submit(in_a_way(1, Way::Waits)).await.unwrap();
        logged.gate.began.wait_for(1).await;
        let after = bench.client.submit_flow(none().after(&import).then(sum)).await.unwrap();
        let chain = in_a_way(2, Way::Waits).then(none()).then(note("last"));
        let chain = bench.client.submit_flow(chain).await.unwrap();
        logged.gate.began.wait_for(2).await;
        becomes(&bench, after.id(), TaskState::Blocked).await;
        becomes(&bench, chain.id(), TaskState::Blocked).await;
        logged.gate.open.hit();
        assert_eq!(after.result_within(SOON).await.unwrap(), 0);
        chain.result_within(SOON).await.unwrap();
        logged.worker.stop().await;
    }

    async fn a_group_is_cancelled_with_what_it_waits_for_if_it_says_so(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let import = bench.client.submit(in_a_way(1, Way::Waits)).await.unwrap();
        logged.gate.began.wait_for(1).await;
        let waits = group([note("a"), note("b")]).after(&import);
        let waits = waits.on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let waits = bench.client.submit_group(waits).await.unwrap();
        bench.client.cancel(import.id()).await.unwrap();
        let problem = waits.ended().await.unwrap_err();
        assert!(problem.is_cancelled(), "{problem}");
        assert!(logged.log.lines().is_empty());
        logged.gate.open.hit();
        logged.worker.stop().await;
    }

    async fn a_flow_after_a_task_that_can_not_be_named_is_refused(bench: Bench) {
        let unkept = || optimus_core::key(number, 7);
        let chain = number(1).then(plus(1)).after(unkept());
        let problem = bench.client.submit_flow(chain).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("outcome_ttl"), "{problem}");
        let members = group([number(1)]).after(unkept());
        let problem = bench.client.submit_group(members).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("outcome_ttl"), "{problem}");
        assert_eq!(unfinished(&bench, "default").await, 0);
    }

    async fn a_scope_submits_a_flow_with_its_client(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let submit = async { number(1).then(plus(1)).perform_async().await.unwrap() };
        let handle = bench.client.scope(submit).await;
        assert_eq!(handle.result_within(SOON).await.unwrap(), 2);
        logged.worker.stop().await;
    }
}
