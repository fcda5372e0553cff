//! A user that submits groups of tasks, adds members to them and cancels them.

use optimus_core::{
    Call, Error, Flow, FlowHandle, IntoFlow as _, Member, PrerequisiteFailure, QueueName, TaskId,
    group,
};
use optimus_testkit::history::What;

use super::User;
use super::shaped::{GIVE_UP, until, work};
use crate::flow_tasks::{GoesOn, Link, Total};
use crate::load::Known;
use crate::tasks::{Kind, Work};

/// A member of a group that a user is about to submit.
#[derive(Clone)]
struct Planned {
    number: u64,
    kind: Kind,
    queue: QueueName,
    /// The step after it, if the member is a chain.
    link: Option<u64>,
}

/// A group that a user is about to submit.
#[derive(Clone)]
struct Plan {
    id: TaskId,
    first: Option<u64>,
    members: Vec<Planned>,
    policy: PrerequisiteFailure,
    callback: u64,
    callback_queue: QueueName,
    callback_policy: PrerequisiteFailure,
}

impl Planned {
    /// The task that counts in the group.
    fn last(&self) -> u64 {
        self.link.unwrap_or(self.number)
    }

    fn flow(&self) -> Flow<'static, u64> {
        let Planned { number, kind, queue, link } = self;
        let flow = work(*number, *kind, queue).into_flow();
        match link {
            Some(link) => flow
                .then(Link::after(*link, *number).queue(queue))
                .on_prerequisite_failure(PrerequisiteFailure::Cancel),
            None => flow,
        }
    }
}

impl Plan {
    /// The numbers of all tasks but those of the members.
    fn others(&self) -> Vec<u64> {
        self.first.into_iter().chain([self.callback]).collect()
    }

    /// The numbers of all tasks of the members.
    fn tasks(&self) -> Vec<u64> {
        self.members.iter().flat_map(|one| [Some(one.number), one.link]).flatten().collect()
    }

    fn flow(&self) -> Flow<'static, u64> {
        let members: Vec<_> = self.members.iter().map(Planned::flow).collect();
        let of = self.members.iter().map(Planned::last).collect();
        let goes_on =
            if self.policy == PrerequisiteFailure::Run { GoesOn::Yes } else { GoesOn::No };
        let callback = Total::over(self.callback, of, goes_on)
            .queue(&self.callback_queue)
            .on_prerequisite_failure(self.callback_policy)
            .give_up_after(GIVE_UP);
        let group = group(members).id(self.id.clone()).on_member_failure(self.policy);
        match self.first {
            Some(first) => {
                let first: Call<Work> = work(first, Kind::Lasts(5), &self.callback_queue);
                first.then(group).then(callback)
            }
            None => group.then(callback),
        }
    }
}

impl User {
    fn plan_member(&mut self) -> Planned {
        let link = (self.random.u8(..4) == 0).then(|| self.number());
        let (number, kind) = (self.number(), self.flow_kind());
        Planned { number, kind, queue: self.queues.pick(&mut self.random).clone(), link }
    }

    fn plan_group(&mut self) -> Plan {
        let count = self.random.usize(1..9);
        Plan {
            id: TaskId::new(self.queues.pick(&mut self.random).clone()),
            first: (self.random.u8(..3) == 0).then(|| self.number()),
            members: (0..count).map(|_| self.plan_member()).collect(),
            policy: self.policy(),
            callback: self.number(),
            callback_queue: self.queues.pick(&mut self.random).clone(),
            callback_policy: self.policy(),
        }
    }

    /// Records the tasks of a group, and which of them wait for which.
    fn write_group(&self, plan: &Plan) {
        for number in plan.others().into_iter().chain(plan.tasks()) {
            self.invoke(number, None, 0);
        }
        self.write(What::Waits { task: plan.callback });
        for member in &plan.members {
            if let Some(first) = plan.first {
                let until = until(PrerequisiteFailure::Wait);
                self.write(What::After { task: member.number, other: first, until });
            }
            if let Some(link) = member.link {
                let until = until(PrerequisiteFailure::Cancel);
                self.write(What::After { task: link, other: member.number, until });
            }
            self.write_counts(plan.callback_of(), member, plan.policy);
        }
    }

    /// Records that the callback of a group waits for a member.
    fn write_counts(&self, callback: Option<u64>, member: &Planned, policy: PrerequisiteFailure) {
        if let Some(task) = callback {
            self.write(What::After { task, other: member.last(), until: until(policy) });
        }
    }

    pub(super) async fn submit_group(&mut self) {
        let plan = self.plan_group();
        self.write_group(&plan);
        let mut submitted = self.client.submit_flow(plan.flow()).await;
        if let Err(problem) = &submitted
            && may_go_again(problem)
            && self.random.bool()
        {
            submitted = self.client.submit_flow(plan.flow()).await;
        }
        let known = Known {
            id: plan.id.clone(),
            policy: plan.policy,
            tasks: plan.tasks(),
            callback: plan.callback_of(),
        };
        self.shared.flows.groups().push(known);
        if let Ok(handle) = submitted {
            self.group_answered(&plan, handle);
        } else {
            self.write_undone(&plan.others());
            self.write_undone(&plan.tasks());
        }
    }

    fn group_answered(&mut self, plan: &Plan, handle: FlowHandle<u64>) {
        for (index, member) in (0..).zip(&plan.members) {
            let id = Member::id(&plan.id, &member.queue, index);
            self.write_acked(member.last(), &id);
        }
        let steps = handle.steps();
        if let (Some(first), Some(step)) = (plan.first, steps.first()) {
            self.write_acked(first, step.id());
        }
        if let Some(step) = steps.last() {
            self.write_acked(plan.callback, step.id());
        }
        if self.random.u8(..4) == 0 {
            self.await_flow(plan.callback, handle);
        }
    }

    fn some_group(&mut self) -> Option<Known> {
        let groups = self.shared.flows.groups();
        let from = groups.len().saturating_sub(4);
        (!groups.is_empty()).then(|| groups[self.random.usize(from..groups.len())].clone())
    }

    /// Adds members to a group that may have ended. If it may wait for members that were not
    /// stored, it is cancelled.
    pub(super) async fn add_members(&mut self) {
        let Some(known) = self.some_group() else { return };
        let count = self.random.usize(1..4);
        let members: Vec<Planned> =
            (0..count).map(|_| Planned { link: None, ..self.plan_member() }).collect();
        let numbers: Vec<u64> = members.iter().map(|member| member.number).collect();
        for member in &members {
            self.invoke(member.number, None, 0);
            self.write_counts(known.callback, member, known.policy);
        }
        let calls: Vec<Call<Work>> =
            members.iter().map(|one| work(one.number, one.kind, &one.queue)).collect();
        let group = self.client.group::<u64>(known.id.clone()).on_member_failure(known.policy);
        let added = group.add(calls).await;
        if let Some(group) =
            self.shared.flows.groups().iter_mut().find(|group| group.id == known.id)
        {
            group.tasks.extend(&numbers);
        }
        // A cancelled group cancels what is added to it, too.
        self.write_undone(&numbers);
        if added.is_err_and(|problem| !problem.is_wrong_state()) {
            self.cancel_known(&known).await;
        }
    }

    pub(super) async fn cancel_group(&mut self) {
        if let Some(known) = self.some_group() {
            self.cancel_known(&known).await;
        }
    }

    async fn cancel_known(&self, known: &Known) {
        self.write_cancels(&known.tasks);
        if let Some(callback) = known.callback {
            self.write_cancels(&[callback]);
        }
        drop(self.client.group::<u64>(known.id.clone()).cancel().await);
    }
}

impl Plan {
    /// The callback, unless it runs with each end of the group.
    fn callback_of(&self) -> Option<u64> {
        (self.callback_policy != PrerequisiteFailure::Run).then_some(self.callback)
    }
}

/// Whether the same group may be submitted again.
fn may_go_again(problem: &Error) -> bool {
    problem.is_unavailable() || problem.is_unknown_outcome()
}
