//! Steps that are stored before the step that they follow, whose submitter has gone.

use std::ops::RangeInclusive;

use crate::{
    after::{after, or},
    bench::{Bench, START},
    jobs::{job, ready_at},
};
use optimus_core::{
    After, Prerequisite,
    PrerequisiteFailure::{Cancel, Run, Wait},
    Submission, TaskId, TaskState,
    broker::{Batch, Receipt},
};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Makes a step that waits for one that is not stored.
fn step(bench: &Bench, wait: After) -> Submission {
    ready_at(0, job().queue(&bench.queue)).waiting_for(wait).following_step()
}

fn missing(bench: &Bench) -> TaskId {
    ready_at(0, job().queue(&bench.queue)).id().clone()
}

/// Lets steps ask in this time, as workers do.
async fn ask(here: &Bench, there: &Bench, time: RangeInclusive<u64>) {
    for at in time.step_by(20 * 60_000) {
        for bench in [here, there, here] {
            bench.relay_all(at).await;
        }
    }
}

async fn a_step_is_cancelled_if_the_one_before_it_is_not_there_after_a_day(here: Bench) {
    here.worker(0, "w").await;
    let elsewhere = here.sibling("there");
    for there in [&here, &elsewhere] {
        let former = missing(there);
        let steps = [Wait, Cancel, Run].map(|policy| step(&here, or(policy, after(&former))));
        here.submit(0, &steps).await;
        let next = here.add_after(0, job(), after(steps[0].id())).await;
        ask(&here, there, 0..=DAY - 1).await;
        for task in &steps {
            assert_eq!(here.state(task.id()).await, TaskState::Blocked);
        }
        ask(&here, there, DAY..=DAY + HOUR).await;
        let ends = [TaskState::Cancelled, TaskState::Cancelled, TaskState::Ready];
        for (task, end) in steps.iter().zip(ends) {
            assert_eq!(here.state(task.id()).await, end, "{}", there.queue);
        }
        assert_eq!(here.state(&next).await, TaskState::Cancelled, "and so in turn");
        let found = here.now().inspect(steps[0].id()).await.unwrap();
        assert!(found.errors.contains("\"state\":\"forgotten\""), "{}", found.errors);
        assert_eq!(here.fsck_of_tasks().await, [""; 0]);
        // It is cancelled again, because nothing can bring the other one back.
        here.at(2 * DAY).requeue(steps[0].id()).await.unwrap();
        ask(&here, there, 2 * DAY..=2 * DAY + HOUR).await;
        assert_eq!(here.state(steps[0].id()).await, TaskState::Cancelled);
    }
}

async fn a_step_waits_for_one_that_is_there_however_long_it_takes(here: Bench) {
    let elsewhere = here.sibling("there");
    for (seq, there) in (1..).zip([&here, &elsewhere]) {
        let former = ready_at(0, job().queue(&there.queue));
        let waits = step(&here, after(former.id()));
        here.submit(0, std::slice::from_ref(&waits)).await;
        assert_eq!(here.score("asks", &waits.id().stored()).await, Some(START + MINUTE));
        there.submit(0, std::slice::from_ref(&former)).await;
        ask(&here, there, 0..=2 * DAY).await;
        assert_eq!(here.state(waits.id()).await, TaskState::Blocked);
        let worker = there.worker(2 * DAY, "w").await;
        assert_eq!(there.run_all(2 * DAY, &worker, seq).await, [former.id().clone()]);
        there.relay_all(2 * DAY).await;
        assert_eq!(here.state(waits.id()).await, TaskState::Ready);
        here.at(2 * DAY).delete_all(&here.queue, &[waits.id()]).await.unwrap();
    }
    here.assert_nobody_waits().await;
}

/// Only what the step follows comes with it. Anything else may come much later.
async fn a_step_waits_for_its_other_prerequisites_however_late_they_come(here: Bench) {
    here.worker(0, "w").await;
    let elsewhere = here.sibling("there");
    for there in [&here, &elsewhere] {
        let former = ready_at(0, job().queue(&here.queue));
        let both = [former.id(), &missing(there)].map(|id| Prerequisite::Task(id.clone()));
        let waits = step(&here, After::new(both));
        here.submit(0, std::slice::from_ref(&waits)).await;
        here.submit(0, std::slice::from_ref(&former)).await;
        ask(&here, there, 0..=2 * DAY).await;
        assert_eq!(here.state(waits.id()).await, TaskState::Blocked);
    }
}

/// Its age is that of its id.
async fn a_step_of_a_client_whose_clock_is_wrong_waits_on(here: Bench) {
    here.worker(2 * DAY, "w").await;
    let waits = step(&here, after(&missing(&here)));
    let batch = Batch {
        queue: &here.queue,
        client: "behind",
        number: 1,
        since: 0,
        keep: false,
        tasks: std::slice::from_ref(&waits),
    };
    let stored = here.at(2 * DAY).here(START).submit(&batch).await.unwrap();
    assert_eq!(stored.receipts, [Receipt::Created]);
    assert_eq!(here.field("unmet", &waits.id().stored()).await.as_deref(), Some("0"));
}

on_both![
    a_step_is_cancelled_if_the_one_before_it_is_not_there_after_a_day,
    a_step_waits_for_one_that_is_there_however_long_it_takes,
    a_step_waits_for_its_other_prerequisites_however_late_they_come,
    a_step_of_a_client_whose_clock_is_wrong_waits_on,
];
