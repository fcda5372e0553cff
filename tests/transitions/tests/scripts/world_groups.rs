//! The part of the world that hands results on and has groups, and the calls of groups.

use optimus_core::{
    Member,
    PrerequisiteFailure::{Cancel, Run, Wait},
    QueueName, Submission, TaskId,
    broker::{BrokerError, Completion, Enroll, Outgoing, Trace},
};

use crate::{
    acts::ms,
    after::{after, or},
    bench::Bench,
    jobs::{job, job_of, ready},
    world::{NOW, World},
};

/// An open group of eight members, of which some have ended.
const OPEN: &str = "0Group-----------------";
/// A group without members, which has ended.
const EMPTY: &str = "0Empty-----------------";
/// A group that is not known.
const NEW: &str = "0New-------------------";
/// A group of another queue, with members here.
const AWAY: &str = "0Away------------------";
/// A group that waits for two members.
const LAST: &str = "0Last------------------";

fn named(stored: &str) -> TaskId {
    TaskId::from_stored(QueueName::new("default").expect("a name"), &stored[..22]).expect("an id")
}

/// Returns the group of a situation.
pub(crate) fn group_of(situation: &str) -> TaskId {
    named(match situation {
        "a new group" | "an empty group" => NEW,
        "an ended group" => EMPTY,
        "the last members" => LAST,
        _ => OPEN,
    })
}

/// The group of another queue.
fn away() -> TaskId {
    TaskId::from_stored(QueueName::new("there").expect("a name"), &AWAY[..22]).expect("an id")
}

fn member(group: &TaskId, index: u32) -> Member {
    Member { group: group.clone(), index, on_failure: [Wait, Run, Cancel][index as usize % 3] }
}

async fn enroll(
    bench: &Bench,
    at: u64,
    (group, operation): (&TaskId, &str),
    count: u32,
    seal: bool,
) -> Result<(), BrokerError> {
    let queues = std::slice::from_ref(&bench.queue);
    let keep = Some(ms(600_000));
    let (on_failure, digest, submit, is_later) = (Cancel, "d", "s", false);
    let members =
        Enroll { operation, count, queues, seal, keep, on_failure, digest, submit, is_later };
    bench.at(at).enroll(group, members).await.map(drop)
}

trait Again {
    /// Submits it as a member that may have been submitted before.
    fn again_in(self, group: &TaskId, index: u32) -> Self;
}

impl Again for Submission {
    fn again_in(self, group: &TaskId, index: u32) -> Self {
        self.member_of(member(group, index)).again(Trace::Member { born: 5_500 })
    }
}

impl World {
    /// Adds groups, tasks that wait for them, members, and tasks that take a result.
    pub(crate) async fn group_some(&mut self, bench: &Bench) {
        let (open, empty, last) = (named(OPEN), named(EMPTY), named(LAST));
        for (group, count, seal) in [(&open, 8, false), (&last, 2, true), (&empty, 0, true)] {
            enroll(bench, 5_500, (group, "all"), count, seal).await.expect("it is new");
        }
        let take = |group: &TaskId| after(group).taking("]");
        let large = format!("\"{}\"", "x".repeat(20_000));
        let there = TaskId::new(QueueName::new("there").expect("a name"));
        let tasks = vec![
            ("takes open", ready(job_of("[]")).waiting_for(take(&open))),
            ("needs open", ready(job()).waiting_for(or(Cancel, after(&open)))),
            ("takes last", ready(job_of("[]")).waiting_for(take(&last))),
            ("takes held", ready(job_of("[]")).waiting_for(take(self.id("held")))),
            ("takes held, large", ready(job_of(large)).waiting_for(take(self.id("held")))),
            ("takes there", ready(job_of("[]")).waiting_for(take(&there))),
            ("takes there, large", ready(job_of("[]")).waiting_for(take(&there))),
            ("takes nothing", ready(job_of("[]")).waiting_for(take(&there))),
            ("counts there", ready(job()).waiting_for(after(&there)).again_in(&away(), 40)),
        ];
        self.submit(bench, 5_500, tasks).await;
        let count = |gid: &TaskId, rest: &str| format!("member {} {rest}", gid.stored());
        let effects = [count(&open, "0 success 0 =1"), count(&open, "3 dead 0")];
        self.effects(bench, 5_600, 100, effects.into()).await.expect("they are applied");
    }

    async fn effects(
        &self,
        bench: &Bench,
        at: u64,
        from: usize,
        effects: Vec<String>,
    ) -> Result<(), BrokerError> {
        let source = QueueName::new("elsewhere").expect("a name");
        let effects = (from..).zip(effects).map(|(n, effect)| format!("{n} {effect}")).collect();
        let outgoing = Outgoing { source, target: bench.queue.clone(), effects };
        bench.at(at).apply(&outgoing).await.map(drop)
    }

    pub(crate) async fn group_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let group = group_of(situation);
        match (script, situation) {
            ("disband", _) => bench.at(NOW).disband(&group).await.map(drop),
            (_, "known members") => enroll(bench, NOW, (&group, "all"), 8, false).await,
            (_, "an empty group") => enroll(bench, NOW, (&group, "new"), 0, true).await,
            _ => enroll(bench, NOW, (&group, "new"), 3, true).await,
        }
    }

    /// Lets reports count in groups.
    pub(crate) fn count_some(reports: &mut [Completion], situation: &str) {
        let group = match situation {
            "members" => named(OPEN),
            "the last members" => named(LAST),
            "hands on, all" => {
                let last = reports.last_mut().expect("it holds tasks");
                let result = format!("\"{}\"", "x".repeat(20_000)).into_bytes();
                last.result = Some((result, ms(600_000)));
                last.outcome_ttl = Some(ms(600_000));
                return;
            }
            _ => return,
        };
        // The second one was lost before. One is in a group elsewhere.
        for (report, index) in reports.iter_mut().zip([0, 3, 1]) {
            let index = if situation == "the last members" { index % 2 } else { index };
            report.member = Some(member(&group, index));
        }
        reports[3].member = Some(member(&away(), 41));
    }

    /// Applies effects on groups, or effects that hand results on.
    pub(crate) async fn count_in(&self, bench: &Bench, situation: &str) -> Result<(), BrokerError> {
        let [open, last] = [OPEN, LAST].map(|name| named(name).stored());
        let takes = |name: &str| format!("met {}z", self.id(name).stored());
        let effects = if situation == "members" {
            vec![
                format!("member {open} 0 success 0 =1"),
                format!("member {open} 3 success 0 =2"),
                format!("member {open} 4 dead 2"),
                format!("member {open} 6 cancelled 0"),
                format!("member {last} 0 success 0"),
                format!("member {last} 1 forgotten 2"),
                format!("member {open} 5 dead 1"),
                format!("member {open} 7 success 0 =1"),
            ]
        } else {
            vec![
                format!("{} =1", takes("takes there")),
                format!("{} =\"{}\"", takes("takes there, large"), "x".repeat(20_000)),
                takes("takes nothing"),
                format!("ask {}z {}", self.id("ready").stored(), self.id("done").stored()),
            ]
        };
        self.effects(bench, NOW, 200, effects).await
    }

    /// Members of a group, and tasks that take the result of one that has ended or not.
    pub(crate) fn flow(&self) -> Vec<Submission> {
        let open = named(OPEN);
        vec![
            ready(job()).member_of(member(&open, 1)),
            ready(job()).member_of(member(&open, 2)),
            ready(job_of("[]")).waiting_for(after(self.id("done")).taking("]")),
            ready(job_of("[]")).waiting_for(after(self.id("held")).taking("]")),
            ready(job_of("[]")).waiting_for(after(&named(EMPTY)).taking("]")),
            ready(job()).again_in(&named(OPEN), 4),
            ready(job()).again_in(&away(), 42),
            ready(job()).again(Trace::Outcome),
        ]
    }
}
