//! A user whose tasks have lanes, limits and prerequisites.

use std::time::Duration;

use optimus_core::{
    Call, Due, Error, Lane, Prerequisite, PrerequisiteFailure, QueueName, Submission, Submit,
    TaskId, TaskLimit,
};
use optimus_testkit::history::{Until, What};

use super::User;
use crate::flow_limits::{if_dead, lane, limits, name_of, widest};
use crate::load::Promise;
use crate::tasks::{Kind, Work};

/// How long the success of a task is remembered for those that wait for it.
const OUTCOME_TTL: Duration = Duration::from_secs(600);
/// Before this time, no task gives up.
pub(super) const GIVE_UP: Duration = Duration::from_secs(1_800);
const POLICIES: [PrerequisiteFailure; 3] =
    [PrerequisiteFailure::Wait, PrerequisiteFailure::Cancel, PrerequisiteFailure::Run];
/// The most promises that are open at a time.
const PROMISES_MAX: usize = 8;

/// A call in a lane, and with limits of several gates.
pub(super) struct Shaped {
    call: Call<Work>,
    lane: Option<Lane>,
    limits: Vec<TaskLimit>,
}

impl Submit for Shaped {
    type Output = u64;

    fn into_submission(self) -> Result<Submission, Error> {
        let submission = self.call.into_submission()?.limited_by(self.limits);
        Ok(match self.lane {
            Some(lane) => submission.in_lane(lane),
            None => submission,
        })
    }
}

impl User {
    pub(super) fn policy(&mut self) -> PrerequisiteFailure {
        POLICIES[self.random.usize(..POLICIES.len())]
    }

    /// Returns a kind. Most tasks of these kinds succeed soon.
    pub(super) fn flow_kind(&mut self) -> Kind {
        match self.random.u8(..16) {
            0..9 => Kind::Lasts(self.random.u64(..40)),
            9 => Kind::Shuts,
            10 => Kind::Fatal,
            _ => self.kind(),
        }
    }

    pub(super) async fn submit_shaped(&mut self) {
        let number = self.number();
        let queue = self.queues.pick(&mut self.random).clone();
        let kind = self.flow_kind();
        let mut call = work(number, kind, &queue);
        if self.random.u8(..2) == 0 {
            call = self.wait_for_others(number, call);
        }
        self.submit_in_shape(number, &queue, call).await;
    }

    /// Submits a task for which others wait already.
    pub(super) async fn keep_promise(&mut self) {
        let promise = {
            let mut promises = self.shared.flows.promises();
            let at = (!promises.is_empty()).then(|| self.random.usize(..promises.len()));
            at.map(|at| promises.swap_remove(at))
        };
        let Some(Promise { number, queue, name }) = promise else {
            return self.submit_shaped().await;
        };
        let kind = self.flow_kind();
        let call = work(number, kind, &queue);
        let call = match name {
            Prerequisite::Task(id) => call.id(id),
            Prerequisite::Key { biz_id, .. } => call.biz_id(biz_id).outcome_ttl(OUTCOME_TTL),
        };
        self.submit_in_shape(number, &queue, call).await;
    }

    /// Submits a call, sometimes in a lane, with limits, a delay or a priority.
    async fn submit_in_shape(&mut self, number: u64, queue: &QueueName, mut call: Call<Work>) {
        let lane = self.random.bool().then(|| lane(self.random.usize(..16)));
        let mut limited = Vec::new();
        if self.random.u8(..3) == 0 {
            limited = limits(self.random.usize(..16), lane.as_ref());
        }
        let mut cost = 1;
        if !limited.is_empty() && self.random.u8(..4) == 0 {
            cost = self.random.u32(1..5);
            call = call.cost(cost);
        }
        let mut delay_ms = 0;
        if self.random.u8(..6) == 0 {
            delay_ms = self.random.u64(1..1_500);
            call = call.due(Due::In(Duration::from_millis(delay_ms)));
        }
        if self.random.u8(..6) == 0 {
            call = call.priority(self.random.i8(-3..4));
        }
        self.write_shape(number, queue, lane.as_ref(), (&limited, cost));
        let call = Shaped { call, lane, limits: limited };
        let handle = self.submit(number, call, None, delay_ms).await;
        if let Some(handle) = handle.filter(|_| self.random.u8(..6) == 0) {
            self.await_result(number, handle);
        }
    }

    fn write_shape(
        &self,
        task: u64,
        queue: &QueueName,
        lane: Option<&Lane>,
        (limits, cost): (&[TaskLimit], u32),
    ) {
        if let Some(lane) = lane {
            let (width, if_dead) = (widest(lane), if_dead(lane));
            let lane = name_of(queue, &optimus_core::Gate::Lane(lane.key.clone()));
            self.write(What::Lane { task, width, if_dead, lane });
        }
        for TaskLimit { gate, .. } in limits {
            let limit = name_of(queue, gate);
            self.write(What::Limited { task, cost: cost.into(), limit });
        }
    }

    /// Lets the call wait for up to three other tasks, of which some are submitted later.
    fn wait_for_others(&mut self, number: u64, mut call: Call<Work>) -> Call<Work> {
        let policy = self.policy();
        let until = until(policy);
        self.write(What::Waits { task: number });
        let mut count = 0;
        for _ in 0..self.random.usize(1..4) {
            let Some((other, name)) = self.prerequisite() else { continue };
            self.write(What::After { task: number, other, until });
            call = call.after(name);
            count += 1;
        }
        if count == 0 {
            return call;
        }
        call = call.on_prerequisite_failure(policy);
        if self.random.u8(..4) > 0 { call.give_up_after(GIVE_UP) } else { call }
    }

    /// Returns a task that was submitted, one that others wait for, or a new promise.
    fn prerequisite(&mut self) -> Option<(u64, Prerequisite)> {
        let open = self.shared.flows.promises().len();
        match self.random.u8(..4) {
            0..2 => {
                let (number, id) = self.some_task()?;
                Some((number, Prerequisite::Task(id)))
            }
            2 if open > 0 => {
                let promises = self.shared.flows.promises();
                let promise = &promises[self.random.usize(..promises.len())];
                Some((promise.number, promise.name.clone()))
            }
            _ if open < PROMISES_MAX => {
                let number = self.number();
                let queue = self.queues.pick(&mut self.random).clone();
                let name = if self.random.bool() {
                    Prerequisite::Task(TaskId::new(queue.clone()))
                } else {
                    let (task, biz_id) = ("work".to_owned(), format!("f{number}"));
                    Prerequisite::Key { queue: queue.clone(), task, biz_id }
                };
                let promise = Promise { number, queue, name: name.clone() };
                self.shared.flows.promises().push(promise);
                Some((number, name))
            }
            _ => None,
        }
    }
}

/// What a task that waits with this policy can rely on when it begins.
pub(super) fn until(policy: PrerequisiteFailure) -> Until {
    if policy == PrerequisiteFailure::Run { Until::End } else { Until::Success }
}

/// Returns a call of that kind whose attempts end soon.
pub(super) fn work(number: u64, kind: Kind, queue: &QueueName) -> Call<Work> {
    let call = Work::new(number, kind).queue(queue);
    match kind {
        Kind::Hangs => call.timeout(Duration::from_millis(400)).max_retry(1),
        Kind::Fails(100) => call.max_retry(1),
        _ => call,
    }
}
