//! What an operator and a handler see of flows and groups: explanations, pages, errors.

use crate::common::{
    Bench,
    sums::{LoggedWorker, SOON, Way, becomes, in_a_way, note, number, plus, sum},
};
use optimus_core::{
    BoxError, Call, Context, DeleteAnswer, Explanation, GroupCursor, GroupHandle, Obstacle,
    PrerequisiteFailure, StepHandle, Task, TaskId, TaskState, group,
};
use optimus_testkit::eventually;
use serde::{Deserialize, Serialize};

/// Adds a member to its group until the depth is 0, and returns its position.
#[derive(Serialize, Deserialize)]
struct Grow {
    depth: u64,
}

impl Task for Grow {
    const NAME: &'static str = "grow";
    type Output = u64;

    async fn run(self, ctx: Context) -> Result<u64, BoxError> {
        let group = ctx.group().ok_or("in no group")?;
        if self.depth > 0 {
            let added = tokio::spawn({
                let group = group.clone();
                async move { group.add([grow(self.depth - 1)]).await }
            });
            // The number of the addition is that of the attempt, also in another future.
            added.await??;
            if ctx.attempt() == 1 {
                return Err("the first attempt fails".into());
            }
        }
        let found = group.handle::<u64>()?.progress().await?;
        assert!(found.total > group.position(), "{found}");
        Ok(u64::from(group.position()))
    }
}

fn grow(depth: u64) -> Call<Grow> {
    let jitter = 0.0;
    let wait = std::time::Duration::from_millis(1);
    Grow { depth }.call().max_retry(1).backoff(optimus_core::Backoff::Fixed { wait, jitter })
}

async fn explain(bench: &Bench, id: &TaskId) -> Explanation {
    bench.client.inspector().explain(id).await.unwrap()
}

/// Three members, of which the second dies.
fn damaged() -> impl Iterator<Item = Call<crate::common::sums::Number>> + Send {
    (0..3).map(|n| in_a_way(n, if n == 1 { Way::Dies } else { Way::Plain }))
}

async fn lost(group: &GroupHandle<u64>) {
    let is_lost = async || {
        let progress = group.progress().await.unwrap();
        (progress.done, progress.lost) == (2, 1)
    };
    eventually("a member is lost, and the others have ended", SOON, is_lost).await;
}

on_both! {
    async fn a_member_finds_its_group_its_position_and_can_add_members(bench: Bench) {
        let worker = bench.start(bench.worker().task_type::<Grow>());
        let handle = bench.client.submit_group(group([grow(0), grow(2)])).await.unwrap();
        assert_eq!(handle.results().await.unwrap(), [0, 1, 2, 3]);
        let alone = bench.client.submit(grow(0).max_retry(0)).await.unwrap();
        let problem = alone.result_within(SOON).await.unwrap_err();
        assert!(problem.to_string().contains("in no group"), "{problem}");
        worker.stop().await;
    }

    async fn the_id_of_a_group_is_explained_by_the_member_that_it_waits_for(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handle = bench.client.submit_group(group(damaged())).await.unwrap();
        lost(&handle).await;
        let why = explain(&bench, handle.id()).await;
        let [Obstacle::Group { id, progress }, Obstacle::LostMember(member)] = &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((id, progress.total, member.position), (handle.id(), 3, 1));
        let text = why.to_string();
        assert!(text.contains("is a group: 2 of 3 members have ended; 1 was dead"), "{text}");
        assert!(text.contains(&format!("the task {} (number) is dead", member.id)), "{text}");

        let of_member = explain(&bench, &member.id).await;
        let place = of_member.member.as_ref().unwrap();
        assert_eq!((&place.group, place.position), (handle.id(), 1));
        let text = of_member.to_string();
        assert!(text.contains("it is member 1 (from 0) of the group"), "{text}");

        logged.gate.open.hit();
        bench.client.requeue(&member.id).await.unwrap();
        assert_eq!(handle.results().await.unwrap(), [0, 1, 2]);
        let text = explain(&bench, handle.id()).await.to_string();
        assert!(text.ends_with("is a group: 3 of 3 members have ended"), "{text}");
        logged.worker.stop().await;
    }

    async fn a_late_step_is_explained_by_the_step_at_which_all_wait(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Dies).then(plus(1)).then(plus(1)).then(note("late"));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let steps: Vec<_> = handle.steps().iter().map(StepHandle::id).collect();
        becomes(&bench, steps[0], TaskState::Dead).await;
        let why = explain(&bench, steps[3]).await;
        let [Obstacle::Prerequisite(next), Obstacle::Origin { through: 2, prerequisite, .. }] =
            &why.obstacles[..]
        else {
            panic!("{why}");
        };
        assert_eq!((next.state, prerequisite.state), (TaskState::Blocked, TaskState::Dead));
        let text = format!(
            "{} waits, through 1 other task, until {} has succeeded, which is dead: requeue it",
            steps[2], steps[0]
        );
        assert!(why.to_string().contains(&text), "{why}");
        let text = explain(&bench, steps[2]).await.to_string();
        assert!(text.contains(&format!("{} waits until", steps[1])), "{text}");
        logged.worker.stop().await;
    }

    async fn members_and_a_callback_after_a_dead_step_are_explained_by_it(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = in_a_way(1, Way::Dies).then(group([1, 2].map(plus))).then(sum);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let steps: Vec<_> = handle.steps().iter().map(StepHandle::id).collect();
        becomes(&bench, steps[0], TaskState::Dead).await;
        let text = format!("{} has succeeded, which is dead: requeue it", steps[0]);
        let why = explain(&bench, steps[1]).await.to_string();
        assert!(why.contains("0 of 2 members have ended") && why.contains(&text), "{why}");
        // The callback waits for the group, and its members for the dead step.
        let why = explain(&bench, steps[2]).await.to_string();
        let through = format!("2. {} waits until {text}", steps[1]);
        assert!(why.contains("0 of 2 members have ended") && why.contains(&through), "{why}");
        let why = bench.client.inspector().explain_queue("default").await.unwrap().to_string();
        assert!(why.contains(&text), "{why}");
        let before = bench.client.inspector().prerequisites(steps[1]).await.unwrap();
        assert_eq!(before[0].state, TaskState::Dead);
        logged.worker.stop().await;
    }

    async fn the_groups_of_a_queue_are_listed_page_by_page(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let inspector = bench.client.inspector();
        assert!(inspector.groups("default", None, 10).await.unwrap().rows.is_empty());
        let mut ids = Vec::new();
        for _ in 0..4 {
            let handle = bench.client.submit_group(group((0..3).map(number))).await.unwrap();
            handle.results().await.unwrap();
            ids.push(handle.id().clone());
        }
        let open = bench.client.submit_group(group(damaged())).await.unwrap();
        lost(&open).await;
        ids.push(open.id().clone());
        let (mut found, mut after): (Vec<_>, Option<GroupCursor>) = (Vec::new(), None);
        loop {
            let page = inspector.groups("default", after.as_ref(), 2).await.unwrap();
            assert!(page.rows.len() <= 2);
            found.extend(page.rows);
            let text = page.next.map(|next| next.to_string());
            after = text.map(|text| text.parse().unwrap());
            if after.is_none() {
                break;
            }
        }
        let mut listed: Vec<_> = found.iter().map(|row| row.id.clone()).collect();
        listed.sort();
        assert_eq!(listed, ids);
        assert!(found.is_sorted_by_key(|row| row.kept_until));
        let row = found.iter().find(|row| row.id == *open.id()).unwrap();
        assert_eq!((row.progress.ended, row.progress.lost), (None, 1));
        assert!(row.created.unwrap() <= optimus_core::Utc::now());
        let cursor = format!("other~5~{}", open.id().stored()).parse().unwrap();
        let problem = inspector.groups("default", Some(&cursor), 2).await.unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains("queue other"), "{problem}");
        assert!(inspector.groups("default", None, 0).await.unwrap_err().is_invalid());
        logged.worker.stop().await;
    }

    async fn a_cancelled_group_says_that_it_is_submitted_again_and_takes_no_members(bench: Bench) {
        let handle = bench.client.submit_group(group((0..3).map(number))).await.unwrap();
        handle.cancel().await.unwrap();
        let problem = handle.results().await.unwrap_err();
        assert!(problem.is_cancelled() && problem.task_ids() == [handle.id().clone()]);
        assert!(problem.to_string().contains("submit its calls again"), "{problem}");
        let problem = handle.add([number(7)]).await.unwrap_err();
        assert!(problem.is_wrong_state(), "{problem}");
        assert!(problem.to_string().contains("submit these calls as another group"), "{problem}");
        let why = explain(&bench, handle.id()).await.to_string();
        assert!(why.contains("it was cancelled when 0 of 3 members had ended"), "{why}");
        let unknown = bench.client.group::<u64>(TaskId::new(handle.id().queue().clone()));
        let problem = unknown.progress().await.unwrap_err();
        assert!(problem.is_forgotten() && problem.to_string().contains("the group"), "{problem}");
    }

    async fn the_id_of_a_group_given_to_a_call_about_a_task_is_named_as_that(bench: Bench) {
        let client = &bench.client;
        let group_id = client.submit_group(group((0..3).map(number))).await.unwrap().id().clone();
        let handle = client.handle::<u64>(group_id.clone());
        let all = [group_id.clone()];
        for problem in [
            client.cancel(&group_id).await.unwrap_err(),
            client.requeue(&group_id).await.unwrap_err(),
            client.requeue_all(all.clone()).await.remove(0).unwrap_err(),
            client.delete(&group_id).await.unwrap_err(),
            handle.status().await.unwrap_err(),
            handle.ended().await.unwrap_err(),
            handle.result().await.unwrap_err(),
        ] {
            assert!(problem.is_invalid(), "{problem}");
            assert!(problem.to_string().contains("is a group, not a task"), "{problem}");
        }
        let task = client.submit(number(1)).await.unwrap();
        let not_a_group = client.group::<u64>(task.id().clone());
        for problem in [
            not_a_group.progress().await.unwrap_err(),
            not_a_group.cancel().await.unwrap_err(),
            not_a_group.results().await.unwrap_err(),
            not_a_group.add([number(2)]).await.unwrap_err(),
        ] {
            assert!(problem.is_invalid(), "{problem}");
            assert!(problem.to_string().contains("is a task, not a group"), "{problem}");
        }
        let nothing = TaskId::new(group_id.queue().clone());
        assert!(client.cancel(&nothing).await.unwrap_err().is_forgotten());
        assert_eq!(client.delete(&nothing).await.unwrap(), DeleteAnswer::NothingThere);
        assert_eq!(client.group::<u64>(group_id).progress().await.unwrap().ended, None);
    }

    async fn a_callback_of_a_cancelled_group_is_not_explained_by_a_requeue(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let flow = group((0..3).map(|n| in_a_way(n, Way::Waits))).then(sum).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let [StepHandle::Group(group), callback, last] = handle.steps() else { panic!() };
        group.cancel().await.unwrap();
        for step in [callback, last] {
            becomes(&bench, step.id(), TaskState::Cancelled).await;
            let why = explain(&bench, step.id()).await;
            let [Obstacle::Ended { state, error: Some(_), is_final: true }, Obstacle::Void] =
                &why.obstacles[..]
            else {
                panic!("{why}");
            };
            assert_eq!(*state, TaskState::Cancelled);
            let text = why.to_string();
            assert!(!text.contains("requeue it") && text.contains("no requeue helps"), "{text}");
        }
        logged.gate.open.hit();
        logged.worker.stop().await;
    }

    async fn a_cancelled_callback_of_a_cancelled_group_is_not_explained_by_a_requeue(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let handle = group((0..3).map(|n| in_a_way(n, Way::Waits))).then(sum);
        let handle = bench.client.submit_flow(handle).await.unwrap();
        let [StepHandle::Group(group), callback] = handle.steps() else { panic!() };
        bench.client.cancel(callback.id()).await.unwrap();
        let before = explain(&bench, callback.id()).await;
        assert!(before.to_string().contains("requeue it"), "it waits again: {before}");
        group.cancel().await.unwrap();
        let why = explain(&bench, callback.id()).await;
        let text = why.to_string();
        assert!(!text.contains("requeue it") && text.contains("no requeue helps"), "{text}");
        logged.gate.open.hit();
        logged.worker.stop().await;
    }

    async fn a_step_after_a_cancelled_task_is_requeued_after_it(bench: Bench) {
        let flow = number(1).then(plus(1)).on_prerequisite_failure(PrerequisiteFailure::Cancel);
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let [first, second] = handle.steps() else { panic!() };
        bench.client.cancel(first.id()).await.unwrap();
        becomes(&bench, second.id(), TaskState::Cancelled).await;
        let why = explain(&bench, second.id()).await;
        assert_eq!(why.obstacles[1..], [Obstacle::RequeueFirst], "{why}");
        let text = why.to_string();
        assert!(text.ends_with("2. requeue the task that it waited for, and then this task"),
            "{text}");
        let text = explain(&bench, first.id()).await.to_string();
        assert!(text.ends_with("it is cancelled; requeue it to run it again"), "{text}");
    }

    async fn a_program_that_has_only_the_ids_of_a_flow_cancels_it(bench: Bench) {
        let flow = number(1).then(group([1, 2].map(plus))).then(sum).then(plus(1));
        let handle = bench.client.submit_flow(flow).await.unwrap();
        let texts: Vec<String> = handle.steps().iter().map(|one| one.id().to_string()).collect();
        let ids: Vec<TaskId> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let done = bench.client.cancel_flow(ids.clone()).await.unwrap();
        assert_eq!((&done.cancelled, done.ended.len()), (&ids, 0));
        for step in handle.steps() {
            let state = match step {
                StepHandle::Task(task) => Some(task.status().await.unwrap()),
                StepHandle::Group(group) => group.progress().await.unwrap().ended,
                _ => None,
            };
            assert_eq!(state, Some(TaskState::Cancelled));
        }
        // Repeated, it changes nothing, and says so.
        let done = bench.client.cancel_flow(ids.clone()).await.unwrap();
        assert!(done.cancelled.is_empty() && done.asked_to_stop.is_empty(), "{done:?}");
        let ended: Vec<_> = ids.into_iter().map(|id| (id, TaskState::Cancelled)).collect();
        assert_eq!(done.ended, ended);
        let nothing = [TaskId::new(handle.id().queue().clone())];
        assert!(bench.client.cancel_flow(nothing).await.unwrap_err().is_forgotten());
        assert!(bench.client.cancel_flow([]).await.unwrap_err().is_invalid());
    }

    async fn a_step_whose_biz_id_is_taken_is_named(bench: Bench) {
        let owner = bench.client.submit(note("first").biz_id("o-17")).await.unwrap();
        let flow = number(1).then(note("second").biz_id("o-17"));
        let problem = bench.client.submit_flow(flow).await.unwrap_err();
        assert!(problem.is_duplicate() && problem.task_ids() == [owner.id().clone()]);
        let text = format!("task \"note\": its biz id \"o-17\" is held by {}", owner.id());
        assert!(problem.to_string().contains(&text), "{problem}");
    }

    async fn a_bare_group_and_a_call_are_flows(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let one = bench.client.submit_flow(number(7)).await.unwrap();
        assert_eq!(one.result_within(SOON).await.unwrap(), 7);
        let calls = group(damaged()).on_member_failure(PrerequisiteFailure::Run);
        let three = bench.client.submit_flow(calls).await.unwrap();
        let results = three.result_within(SOON).await.unwrap();
        assert_eq!((results.total(), results.failed()), (3, 1));
        let problem = results.all().await.unwrap_err();
        assert!(problem.is_dead(), "{problem}");
        assert!(problem.to_string().contains("take GroupResults"), "{problem}");
        logged.worker.stop().await;
    }
}
