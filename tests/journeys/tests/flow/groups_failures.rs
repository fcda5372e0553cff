//! What the failure of one task means for the group, the chain and the steps around it. Nothing
//! stays Blocked, except what waits for an operator.

use std::time::Duration;

use crate::common::{
    Bench,
    sums::{
        LoggedWorker, SOON, Way, becomes, in_a_way, note, number, plus, plus_in_a_way, sum,
        sum_pages,
    },
};
use optimus_core::{
    Due,
    PrerequisiteFailure::{Cancel, Run},
    QueueName, StepHandle, TaskId, TaskState, given, group,
};
use optimus_testkit::eventually;

on_both! {
    async fn a_dead_step_within_a_member_cancels_a_group_with_cancel(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        for way in [Way::Dies, Way::Plain] {
            let chain = in_a_way(1, way).then(plus_in_a_way(1, Way::Dies).queue("other"));
            let flow = group([chain.then(plus(1))]).on_member_failure(Cancel).then(sum);
            let handle = bench.client.submit_flow(flow).await.unwrap();
            let problem = handle.result_within(SOON).await.unwrap_err();
            assert!(problem.is_cancelled(), "{problem}");
            // It names the step that has failed.
            assert_eq!(problem.attempt_error().unwrap().message, "no number");
            let (group, text) = (handle.steps()[0].id(), problem.to_string());
            let [found, failed] = problem.task_ids() else { panic!("{problem}") };
            let name = if way == Way::Dies { "number" } else { "add" };
            let because = format!("because the task {failed} ({name}) of member 0 (from 0)");
            assert!(found == group && text.contains(&because), "{text}");
            becomes(&bench, handle.id(), TaskState::Cancelled).await;
        }
        logged.worker.stop().await;
    }

    async fn the_error_of_a_group_names_a_failed_task_of_a_group_within(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let inner = group([in_a_way(1, Way::Dies)]).on_member_failure(Cancel).then(sum);
        let members = group([inner]).on_member_failure(Cancel);
        let handle = bench.client.submit_group(members).await.unwrap();
        let problem = handle.ended().await.unwrap_err();
        assert!(problem.to_string().contains(" of member 0 (from 0) of the group "), "{problem}");
        assert_eq!(problem.attempt_error().unwrap().message, "no number");
        // No member has cancelled this one.
        let waits = group([in_a_way(1, Way::Waits)]);
        let waits = bench.client.submit_group(waits).await.unwrap();
        waits.cancel().await.unwrap();
        let problem = waits.ended().await.unwrap_err();
        assert_eq!(problem.task_ids(), [waits.id().clone()]);
        logged.gate.open.hit();
        logged.worker.stop().await;
    }

    async fn a_dead_step_within_a_member_counts_as_a_failure_of_a_group_with_run(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let chains = (0..3).map(|n| {
            let way = if n == 1 { Way::Dies } else { Way::Plain };
            in_a_way(n, way).then(plus(10).queue("other")).then(plus(100))
        });
        let flow = group(chains).on_member_failure(Run).then(sum_pages);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), (222, vec![1]));
        logged.worker.stop().await;
    }

    async fn a_dead_step_within_a_member_is_named_and_its_requeue_ends_the_group(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let chains = (0..3).map(|n| {
            let way = if n == 1 { Way::Dies } else { Way::Plain };
            number(n).then(plus_in_a_way(10, way).queue("other")).then(plus(100))
        });
        let handle = bench.client.submit_flow(group(chains).then(sum)).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead(), "{problem}");
        assert_eq!(problem.attempt_error().unwrap().message, "no number");
        logged.gate.open.hit();
        let dead = bench.client.inspector().list("other", TaskState::Dead, None, 9).await.unwrap();
        bench.client.requeue(&dead.rows[0].id).await.unwrap();
        assert_eq!(handle.result_within(SOON).await.unwrap(), 333);
        logged.worker.stop().await;
    }

    async fn steps_after_a_cancelled_group_are_cancelled(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let dies = group([in_a_way(1, Way::Dies)]).on_member_failure(Cancel);
        let elsewhere = given(|| sum(Vec::new())).take::<0>().queue("other");
        let flow = dies.then(elsewhere).then(plus(1)).then(group([plus(1)])).then(sum);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        assert!(handle.result_within(SOON).await.unwrap_err().is_cancelled());
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        for place in [1, 2] {
            becomes(&bench, handle.steps()[place].id(), TaskState::Cancelled).await;
        }
        logged.worker.stop().await;
    }

    async fn a_callback_is_cancelled_with_its_group(bench: Bench) {
        let late = (0..3).map(|n| number(n).due(Due::In(Duration::from_secs(3600))));
        let handle = bench.client.submit_flow(group(late).then(sum).then(plus(1))).await.unwrap();
        let elsewhere = note("after").queue("other").after(handle.steps()[0].id());
        let elsewhere = bench.client.submit(elsewhere).await.unwrap();
        let logged = LoggedWorker::of(&bench);
        let StepHandle::Group(found) = &handle.steps()[0] else { panic!("a group") };
        found.cancel().await.unwrap();
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        becomes(&bench, elsewhere.id(), TaskState::Cancelled).await;
        // A task that comes later is cancelled, too.
        let later = note("later").queue("other").after(handle.steps()[0].id());
        let later = bench.client.submit(later).await.unwrap();
        becomes(&bench, later.id(), TaskState::Cancelled).await;
        assert!(logged.log.lines().is_empty());
        logged.worker.stop().await;
    }

    async fn a_repeated_submit_of_a_group_that_has_failed_cancels_no_member(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let id = TaskId::new(QueueName::new("default").unwrap());
        let members = || {
            let late = number(2).due(Due::In(Duration::from_secs(3600)));
            group([in_a_way(1, Way::Dies), late]).id(id.clone()).on_member_failure(Cancel)
        };
        let first = bench.client.submit_group(members()).await.unwrap();
        let has_failed =
            async || first.progress().await.unwrap().ended == Some(TaskState::Cancelled);
        eventually("a member has failed", SOON, has_failed).await;
        bench.client.submit_group(members()).await.unwrap();
        let counts = bench.client.inspector().counts("default").await.unwrap();
        assert_eq!((counts.delayed, counts.cancelled), (1, 0), "{counts:?}");
        logged.worker.stop().await;
    }

    async fn with_cancel_a_flow_is_cancelled_through_its_groups(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        for (first, second) in [(Way::Dies, Way::Plain), (Way::Plain, Way::Dies)] {
            let members = group([plus_in_a_way(1, second), plus(2).queue("other")]);
            let flow = in_a_way(1, first).then(members).then(sum).then(plus(1));
            let flow = flow.on_prerequisite_failure(Cancel);
            let handle = bench.client.submit_flow(flow).await.unwrap();
            handle.result_within(SOON).await.unwrap_err();
            becomes(&bench, handle.id(), TaskState::Cancelled).await;
        }
        logged.worker.stop().await;
    }

    async fn the_result_of_a_flow_that_runs_past_failures_is_that_of_its_last_step(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let clean_up = || number(7).on_prerequisite_failure(Run);
        let dies = || group([in_a_way(1, Way::Dies)]).on_member_failure(Cancel);
        let members = || group([number(1)]).on_member_failure(Cancel);
        let cases = [
            dies().then(clean_up()),
            number(1).then(dies()).then(clean_up()),
            dies().then(sum).then(plus(1)).then(clean_up()),
            in_a_way(1, Way::Dies)
                .then(members())
                .on_prerequisite_failure(Cancel)
                .then(clean_up()),
            in_a_way(1, Way::Dies).then(members()).on_prerequisite_failure(Run).then(clean_up()),
        ];
        for flow in cases {
            let handle = bench.client.submit_flow(flow).await.unwrap();
            assert_eq!(handle.result_within(SOON).await.unwrap(), 7);
        }
        logged.worker.stop().await;
    }

    async fn a_late_step_that_has_failed_is_named_while_an_earlier_one_runs(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Waits).then(plus(1)).then(plus(2)).then(plus(3));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        logged.gate.began.wait_for(1).await;
        bench.client.cancel(handle.steps()[2].id()).await.unwrap();
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_cancelled() && problem.to_string().contains("step 3 of 4"), "{problem}");
        logged.gate.open.hit();
        logged.worker.stop().await;
    }

    async fn the_first_step_that_has_failed_is_named_after_those_that_follow_it(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Dies).then(group([plus(1)])).then(sum).then(plus(1));
        let flow = flow.on_prerequisite_failure(Cancel);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        becomes(&bench, handle.id(), TaskState::Cancelled).await;
        let problem = handle.result_within(SOON).await.unwrap_err();
        assert!(problem.is_dead() && problem.to_string().contains("step 1 of 4"), "{problem}");
        logged.worker.stop().await;
    }
}
