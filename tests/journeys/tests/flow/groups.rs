//! Tasks that run in parallel and end together, however they end.

use std::{collections::HashSet, sync::Mutex, time::Duration};

use crate::common::{
    Bench,
    sums::{
        LoggedWorker, Number, SOON, Way, becomes, in_a_way, note, number, plus, spread, sum,
        sum_pages, unfinished,
    },
};
use optimus_core::{
    BoxError, Call, Due, GroupHandle, Layer, Obstacle, PrerequisiteFailure, QueueName, StepHandle,
    Submission, TaskId, TaskState, group,
};
use optimus_testkit::eventually;

fn new_id() -> TaskId {
    TaskId::new(QueueName::new("default").unwrap())
}

fn numbers(count: u64) -> impl Iterator<Item = Call<Number>> + Send {
    (0..count).map(number)
}

/// Cancels a group when its first members have their positions and are not stored yet.
struct CancelsOnce(Mutex<Option<GroupHandle<u64>>>);

impl Layer for CancelsOnce {
    async fn submit(&self, _: &mut Submission) -> Result<(), BoxError> {
        let found = self.0.lock().unwrap().take();
        if let Some(found) = found {
            found.cancel().await?;
        }
        Ok(())
    }
}

on_both! {
    async fn a_callback_takes_the_results_in_the_order_of_the_calls(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handle = bench.client.submit_flow(group(numbers(100)).then(sum)).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 4950);
        let ids: HashSet<_> = handle.steps().iter().map(StepHandle::id).collect();
        assert_eq!(ids.len(), 2);
        let results = bench.client.submit_group(group(numbers(100))).await.unwrap();
        assert_eq!(results.results().await.unwrap(), (0..100).collect::<Vec<_>>());
        logged.worker.stop().await;
    }

    async fn a_group_without_members_ends_at_once(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handle = bench.client.submit_flow(group(numbers(0)).then(sum)).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 0);
        let nothing = bench.client.submit_group(group(numbers(0))).await.unwrap();
        assert!(nothing.results().await.unwrap().is_empty());
        logged.worker.stop().await;
    }

    async fn members_of_several_queues_count(bench: Bench) {
        let here = LoggedWorker::serving(&bench, ["default"]);
        let there = LoggedWorker::serving(&bench, ["other"]);
        let queues = ["default", "other"];
        let calls = (0..50_u64).map(move |n| number(n).queue(queues[(n % 2) as usize]));
        let handle = bench.client.submit_flow(group(calls).then(sum)).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 1225);
        here.worker.stop().await;
        there.worker.stop().await;
    }

    async fn the_results_of_thousands_are_read_page_by_page(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = group(numbers(2_500)).then(sum_pages);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let (total, failed) = handle.result_within(SOON).await.unwrap();
        assert_eq!((total, failed), (2_499 * 1_250, Vec::new()));
        logged.worker.stop().await;
    }

    async fn a_dead_member_holds_the_group_until_it_is_requeued(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (0..5).map(|n| in_a_way(n, if n == 3 { Way::Dies } else { Way::Plain }));
        let handle = bench.client.submit_flow(group(calls).then(sum)).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead(), "{problem}");
        let [member, _] = problem.task_ids() else { panic!("{problem}") };
        let text = format!("waits for member 3 (from 0): the task {member} (number) is dead");
        assert!(problem.to_string().contains(&text), "{problem}");
        assert_eq!(problem.attempt_error().unwrap().message, "no number");
        becomes(&bench, handle.id(), TaskState::Blocked).await;
        let StepHandle::Group(waits) = &handle.steps()[0] else { panic!("a group") };
        let all_but_one = async || waits.progress().await.unwrap().done == 4;
        eventually("the others have ended", SOON, all_but_one).await;
        assert_eq!(waits.progress().await.unwrap().lost, 1);
        let explained = bench.client.inspector().explain(handle.id()).await.unwrap();
        let [Obstacle::Prerequisite(found), Obstacle::LostMember(lost)] = &explained.obstacles[..]
        else {
            panic!("{explained:?}")
        };
        assert_eq!((lost.position, &lost.id), (3, member));
        assert_eq!(found.group.as_ref().unwrap().total, 5);
        let text = explained.to_string();
        assert!(text.contains("4 of 5 members have ended; 1 was dead or cancelled"), "{text}");

        logged.gate.open.hit();
        bench.client.requeue(member).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 10);
        logged.worker.stop().await;
    }

    async fn with_run_the_callback_sees_which_members_have_failed(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (0..5).map(|n| in_a_way(n, if n == 3 { Way::Dies } else { Way::Plain }));
        let flow = group(calls).on_member_failure(PrerequisiteFailure::Run).then(sum_pages);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), (7, vec![3]));
        logged.worker.stop().await;
    }

    async fn with_cancel_a_dead_member_cancels_the_group_and_its_callback(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (0..5).map(|n| in_a_way(n, if n == 3 { Way::Dies } else { Way::Plain }));
        let flow = group(calls).on_member_failure(PrerequisiteFailure::Cancel).then(sum);
        let flow = flow.on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_cancelled(), "{problem}");
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        logged.worker.stop().await;
    }

    async fn a_group_that_is_found_by_its_id_shows_its_progress(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let calls = (0..3).map(|n| in_a_way(n, if n == 1 { Way::Waits } else { Way::Plain }));
        let submitted = bench.client.submit_group(group(calls)).await.unwrap();
        let found = bench.client.group::<u64>(submitted.id().clone());
        let two = async || found.progress().await.unwrap().done == 2;
        eventually("two of three have ended", SOON, two).await;
        let progress = found.progress().await.unwrap();
        assert_eq!((progress.total, progress.ended), (3, None));
        let later = bench.client.submit(note("after").after(&found)).await.unwrap();
        assert_eq!(later.status().await.unwrap(), TaskState::Blocked);
        logged.gate.open.hit();
        assert_eq!(found.results().await.unwrap(), [0, 1, 2]);
        later.result_within(SOON).await.unwrap();
        let unknown = bench.client.group::<u64>(new_id());
        assert!(unknown.progress().await.unwrap_err().is_forgotten());
        logged.worker.stop().await;
    }

    async fn a_member_adds_members_and_the_group_waits_for_them(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let id = new_id();
        let flow = group([spread(5, id.clone())]).id(id.clone()).then(sum);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 6);
        assert_eq!(bench.client.group::<u64>(id).progress().await.unwrap().total, 6);
        logged.worker.stop().await;
    }

    async fn members_are_added_from_outside_until_the_group_has_ended(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = group([in_a_way(1, Way::Waits)]).then(sum);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let StepHandle::Group(found) = &handle.steps()[0] else { panic!("a group") };
        let found = bench.client.group::<u64>(found.id().clone());
        assert_eq!(found.add((0..20).map(|_| number(1))).await.unwrap(), 20);
        logged.gate.open.hit();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 21);
        assert!(found.add([number(1)]).await.unwrap_err().is_wrong_state());
    }

    async fn an_addition_that_is_refused_does_not_hold_the_group(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let found = bench.client.submit_group(group([in_a_way(1, Way::Waits)])).await.unwrap();
        for wrong in [number(2).priority(101), number(2).biz_id("a"), number(2).header("a b", "")] {
            let problem = found.add([number(1), wrong]).await.unwrap_err();
            assert!(problem.is_invalid(), "{problem}");
        }
        logged.gate.open.hit();
        assert_eq!(found.results().await.unwrap(), [1]);
        logged.worker.stop().await;
    }

    async fn a_group_of_thousands_is_cancelled_as_a_unit(bench: Bench) {
        let late = (0..5_000).map(|n| number(n).due(Due::In(Duration::from_secs(3600))));
        let flow = group(late).then(sum).on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let StepHandle::Group(found) = &handle.steps()[0] else { panic!("a group") };
        assert_eq!(found.cancel().await.unwrap(), 5_000);
        found.cancel().await.unwrap();
        assert!(found.ended().await.unwrap_err().is_cancelled());
        assert_eq!(unfinished(&bench, "default").await, 0);
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
    }

    async fn chains_are_members_of_groups_and_groups_are_steps_of_chains(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let chains = (0..10).map(|n| number(n).then(plus(1).queue("other")).then(plus(1)));
        let flow = number(100).then(group(chains)).then(sum).then(plus(1000));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 1065);
        logged.worker.stop().await;
    }

    async fn a_group_with_a_callback_is_a_member_of_a_group(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let inner = |n: u64| group((0..5).map(move |m| number(10 * n + m))).then(sum);
        let flow = group((0..3).map(inner)).then(sum).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 181);
        logged.worker.stop().await;
    }

    async fn members_take_the_result_of_the_step_before_the_group(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = number(100).then(group((1..=3).map(plus))).then(sum);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 306);
        logged.worker.stop().await;
    }

    async fn a_group_that_is_submitted_again_under_its_id_runs_no_member_twice(bench: Bench) {
        let id = new_id();
        let submit = async || {
            let calls = (0..2_500).map(|n| note(&format!("{n}")));
            bench.client.submit_group(group(calls).id(id.clone())).await.unwrap()
        };
        let (first, again) = (submit().await, submit().await);
        assert_eq!(first.id(), again.id());
        let logged = LoggedWorker::of(&bench);
        assert_eq!(first.ended().await.unwrap().done, 2_500);
        assert_eq!(submit().await.ended().await.unwrap().total, 2_500);
        let lines: HashSet<String> = logged.log.lines().into_iter().collect();
        assert_eq!((logged.log.lines().len(), lines.len()), (2_500, 2_500));
        logged.worker.stop().await;
    }

    async fn a_flow_that_is_submitted_again_runs_no_step_twice(bench: Bench) {
        let id = new_id();
        let submit = async || {
            let members = group(numbers(3)).id(id.clone());
            let flow = note("first").then(members).then(note("middle")).then(note("last"));
            bench.client.submit_flow(flow).await.unwrap()
        };
        let (first, again) = (submit().await, submit().await);
        assert_eq!(first.id(), again.id());
        let logged = LoggedWorker::of(&bench);
        first.result_within(SOON).await.unwrap();
        again.result_within(SOON).await.unwrap();
        submit().await.result_within(SOON).await.unwrap();
        assert_eq!(unfinished(&bench, "default").await, 0);
        assert_eq!(logged.log.lines(), ["first", "middle", "last"]);
        logged.worker.stop().await;
    }

    async fn a_step_of_a_member_that_has_succeeded_does_not_run_again(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let id = new_id();
        let submit = async || {
            let chains = (0..3).map(|n| note("step").then(in_a_way(n, Way::Waits)));
            bench.client.submit_group(group(chains).id(id.clone())).await.unwrap()
        };
        let first = submit().await;
        logged.gate.began.wait_for(3).await;
        submit().await;
        logged.gate.open.hit();
        assert_eq!(first.results().await.unwrap(), [0, 1, 2]);
        assert_eq!(unfinished(&bench, "default").await, 0);
        assert_eq!(logged.log.lines().len(), 3);
        logged.worker.stop().await;
    }

    async fn a_cancel_reaches_the_steps_and_the_groups_within_members(bench: Bench) {
        let late = |n: u64| number(n).due(Due::In(Duration::from_secs(3600)));
        let chains = (0..3).map(|n| late(n).then(plus(1).queue("other")).then(plus(1)));
        let handle = bench.client.submit_group(group(chains)).await.unwrap();
        handle.cancel().await.unwrap();
        let inner = move |n: u64| late(n).then(group((0..5).map(plus))).then(sum);
        let flow = group((0..3).map(inner)).then(sum).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        handle.cancel().await.unwrap();
        for queue in ["default", "other"] {
            assert_eq!(unfinished(&bench, queue).await, 0, "{queue}");
        }
    }

    async fn a_cancel_during_the_submit_leaves_no_member(bench: Bench) {
        let id = new_id();
        let found = bench.client.group::<u64>(id.clone());
        let cancels = CancelsOnce(Mutex::new(Some(found.clone())));
        let client = bench.client_builder().layer(cancels).connect().await.unwrap();
        client.submit_group(group(numbers(2_500)).id(id)).await.unwrap();
        assert!(found.ended().await.unwrap_err().is_cancelled());
        assert_eq!(unfinished(&bench, "default").await, 0);
    }

    async fn an_addition_to_an_unknown_group_is_refused(bench: Bench) {
        let unknown = bench.client.group::<u64>(new_id());
        assert!(unknown.add([number(1)]).await.unwrap_err().is_forgotten());
        assert_eq!(unfinished(&bench, "default").await, 0);
    }

    async fn a_member_that_can_not_be_stored_cancels_what_was_stored(bench: Bench) {
        let calls = (0..1_500).map(|n| if n == 1_400 { number(n).biz_id("a") } else { number(n) });
        let flow = group(calls).then(sum);
        let problem = bench.client.submit_flow(flow).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("biz id"), "{problem}");
        assert_eq!(unfinished(&bench, "default").await, 0);
        let some = group([number(1)]).on_member_failure(PrerequisiteFailure::Run).then(sum);
        let problem = bench.client.submit_flow(some).await.unwrap_err();
        assert!(problem.to_string().contains("take GroupResults"), "{problem}");
        let ends_with_a_group = group([group([number(1)])]);
        let problem = bench.client.submit_group(ends_with_a_group).await.unwrap_err();
        assert!(problem.to_string().contains("can't end with a group"), "{problem}");
    }

    async fn plain_tasks_run_during_a_group_of_20_000(bench: Bench) {
        let logged = LoggedWorker::serving(&bench, ["default"]);
        let submit = async {
            let handle = bench.client.submit_flow(group(numbers(20_000)).then(sum)).await.unwrap();
            handle.result_within(Duration::from_secs(120)).await.unwrap()
        };
        let beside = async {
            for n in 0..100 {
                let plain = bench.client.submit(number(n).priority(100)).await.unwrap();
                assert_eq!(plain.result_within(Duration::from_secs(5)).await.unwrap(), n);
            }
        };
        let (total, ()) = tokio::join!(submit, beside);
        assert_eq!(total, 19_999 * 10_000);
        logged.worker.stop().await;
    }
}
