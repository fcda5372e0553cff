//! A task within nested flows fails. The policies of both groups decide how the members, the groups
//! and the steps after them end.

use crate::common::{
    Bench,
    sums::{LoggedWorker, SOON, Way, in_a_way, number, plus_in_a_way, sum_pages, unfinished},
};
use optimus_core::{
    FlowHandle,
    PrerequisiteFailure::{self, Cancel, Run, Wait},
    TaskState, group,
};
use optimus_testkit::eventually;

/// The task that fails: one within the inner group, or a step of the member around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    FirstStep,
    FirstWithin,
    LastWithin,
    AloneWithin,
    LastStep,
}

const PLACES: [Place; 5] =
    [Place::FirstStep, Place::FirstWithin, Place::LastWithin, Place::AloneWithin, Place::LastStep];

/// How a flow ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// All members have succeeded for the outer group, or it continues without the one that failed.
    Success,
    Cancelled,
    /// It waits until an operator has requeued the task.
    Requeue,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    outer: Option<PrerequisiteFailure>,
    inner: Option<PrerequisiteFailure>,
    fails: Place,
}

impl Case {
    fn all() -> Vec<Self> {
        let policies = [None, Some(Wait), Some(Cancel), Some(Run)];
        let mut all = Vec::new();
        for outer in policies {
            for inner in policies {
                all.extend(PLACES.map(|fails| Self { outer, inner, fails }));
            }
        }
        all.retain(|case| !case.waits_twice());
        all
    }

    /// Whether an operator must requeue the first step, and then the members of the inner group,
    /// which are cancelled with it and have the policy to wait.
    fn waits_twice(self) -> bool {
        let cancels = matches!(self.outer, Some(Cancel | Run));
        cancels && self.inner == Some(Wait) && self.fails == Place::FirstStep
    }

    fn end(self) -> End {
        let outer = self.outer.unwrap_or(Wait);
        // A group in a member of a group that does not wait takes the policy Cancel.
        let inner = self.inner.unwrap_or(if outer == Wait { Wait } else { Cancel });
        let is_within = !matches!(self.fails, Place::FirstStep | Place::LastStep);
        // Its members are cancelled with the first step, and it continues without them.
        let goes_on = self.fails == Place::FirstStep && outer != Wait && inner == Run;
        match (is_within, inner, outer) {
            (true, Run, _) => End::Success,
            _ if goes_on => End::Success,
            (true, Wait, _) | (false, _, Wait) => End::Requeue,
            // Nobody can requeue the inner group.
            (true, Cancel, Wait) | (_, _, Cancel) => End::Cancelled,
            (_, _, Run) => End::Success,
        }
    }

    async fn submit(self, bench: &Bench) -> FlowHandle<u64> {
        let way = |place| if place == self.fails { Way::Dies } else { Way::Plain };
        let within = (0..2).map(move |n| {
            let (first, last) = match n {
                0 => (way(Place::FirstWithin), way(Place::LastWithin)),
                _ => (Way::Plain, way(Place::AloneWithin)),
            };
            in_a_way(n, first).queue("other").then(plus_in_a_way(1, last))
        });
        let mut within = group(within);
        if let Some(policy) = self.inner {
            within = within.on_member_failure(policy);
        }
        let last = in_a_way(2, way(Place::LastStep)).queue("other");
        let member = in_a_way(1, way(Place::FirstStep)).then(within).then(sum_pages).then(last);
        let mut members = group([member]);
        if let Some(policy) = self.outer {
            members = members.on_member_failure(policy);
        }
        let flow = members.then(sum_pages).then(number(7));
        bench.client.submit_flow(flow).await.unwrap()
    }
}

on_both! {
    async fn no_policy_leaves_anything_blocked(bench: Bench) {
        let logged = LoggedWorker::of(&bench);
        let mut flows = Vec::new();
        for case in Case::all() {
            flows.push((case, case.submit(&bench).await));
        }
        for (case, flow) in &flows {
            let result = flow.result_within(SOON).await;
            match case.end() {
                End::Success => assert_eq!(result.unwrap(), 7, "{case:?}"),
                End::Cancelled => assert!(result.unwrap_err().is_cancelled(), "{case:?}"),
                End::Requeue => {
                    let problem = result.unwrap_err();
                    assert!(problem.is_dead(), "{case:?}: {problem}");
                }
            }
        }
        logged.gate.open.hit();
        for queue in ["default", "other"] {
            let inspector = bench.client.inspector();
            let dead = inspector.list(queue, TaskState::Dead, None, 128).await.unwrap();
            assert!(!dead.rows.is_empty() && dead.next.is_none());
            for answer in bench.client.requeue_all(dead.rows.into_iter().map(|row| row.id)).await {
                answer.unwrap();
            }
        }
        for (case, flow) in flows.iter().filter(|(case, _)| case.end() == End::Requeue) {
            assert_eq!(flow.result_within(SOON).await.unwrap(), 7, "{case:?}");
        }
        for queue in ["default", "other"] {
            let none = async || unfinished(&bench, queue).await == 0;
            eventually("nothing waits", SOON, none).await;
        }
        logged.worker.stop().await;
    }
}
