//! The agent that submits flows. What it could not submit it submits again, under the same ids.

use std::time::Duration;

use anyhow::bail;
use optimus::{
    Client, Error, Flow, Member, QueueName, SubmitAllError, TaskHandle, TaskId, group, step,
};
use optimus_testkit::history::{HistoryLog, IfDead, Until, What};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::client::complain;
use super::flow_tasks::{Counted, OTHER_QUEUE, begin, counted, part, reserve, ship, total, turn};
use super::tasks::QUEUE;
use super::{Role, Settings};

/// How often a client submits, per second.
const TICKS_PER_S: u64 = 10;
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(5);
/// The wait before another try.
const AGAIN: Duration = Duration::from_millis(200);
const MEMBERS_MAX: u64 = 12;
const LANES: u64 = 16;
const KEYS: u64 = 3;
/// The name of the limit of the members in the history.
pub(crate) const PARTS_LIMIT: &str = "parts";

struct Flows<'a> {
    client: Client,
    log: HistoryLog,
    settings: &'a Settings,
    random: fastrand::Rng,
    next: u64,
    /// Tasks that others wait for, or that wait for others, and were not submitted yet.
    owed: Vec<Owed>,
}

/// One of two tasks, of which the other one was submitted.
#[derive(Clone, Copy)]
enum Owed {
    Reserve { order: u64 },
    Ship { number: u64, order: u64 },
}

/// Runs until the agent is asked to end. It then submits what is still owed.
pub(super) async fn run(settings: &Settings) -> anyhow::Result<()> {
    let Role::Client { first, per_s, seed, .. } = settings.role else { bail!("it submits") };
    let log = HistoryLog::open(&settings.folder)?;
    let client = Client::builder(&settings.url).submit_timeout(SUBMIT_TIMEOUT).connect().await?;
    let random = fastrand::Rng::with_seed(seed);
    let mut flows = Flows { client, log, settings, random, next: first, owed: Vec::new() };
    let mut terminated = signal(SignalKind::terminate())?;
    let mut ticks = interval(Duration::from_millis(1_000 / TICKS_PER_S));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !is_asked_to_end(&mut terminated, &mut ticks).await {
        flows.submit(per_s / TICKS_PER_S).await;
    }
    while let Some(owed) = flows.owed.pop() {
        flows.pay(owed).await;
    }
    Ok(())
}

async fn is_asked_to_end(terminated: &mut Signal, ticks: &mut tokio::time::Interval) -> bool {
    tokio::select! {
        biased;
        _ = terminated.recv() => true,
        _ = ticks.tick() => false,
    }
}

impl Flows<'_> {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn invoke(&mut self) -> u64 {
        let task = self.number();
        self.log.write(What::Invoke { task, biz: None, delay_ms: 0 });
        task
    }

    /// Submits about this many tasks.
    async fn submit(&mut self, count: u64) {
        let until = self.next + count;
        while self.next < until {
            match self.random.u8(..4) {
                0 => self.submit_group().await,
                1 => self.submit_turns().await,
                2 => self.submit_counted().await,
                _ => self.submit_pair().await,
            }
        }
    }

    /// Repeats a submit under the same ids until Redis has answered.
    async fn insist<T>(&self, submit: impl AsyncFn() -> Result<T, Error>) -> Option<T> {
        loop {
            match submit().await {
                Ok(answer) => return Some(answer),
                Err(problem) if problem.is_unavailable() || problem.is_unknown_outcome() => {
                    sleep(AGAIN).await;
                }
                Err(problem) => {
                    complain(self.settings, &problem);
                    return None;
                }
            }
        }
    }

    /// A task, a group after it, and a task after the group, in two queues.
    async fn submit_group(&mut self) {
        let first = self.invoke();
        let count = self.random.u64(1..=MEMBERS_MAX);
        let members: Vec<u64> = (0..count).map(|_| self.invoke()).collect();
        let last = self.invoke();
        for member in &members {
            let (task, limit) = (*member, PARTS_LIMIT.to_owned());
            self.log.write(What::Limited { task, cost: 1, limit });
            self.log.write(What::After { task, other: first, until: Until::Success });
            self.log.write(What::After { task: last, other: task, until: Until::Success });
        }
        let queues = [QUEUE, OTHER_QUEUE].map(QueueName::new);
        let [Ok(of_members), Ok(queue)] = queues else { return };
        let id = TaskId::new(queue);
        let flow = || -> Flow<'static, ()> {
            let parts = group(members.clone().into_iter().map(part)).id(id.clone());
            let of = members.clone();
            begin(first).then(parts).then(step![total(last, of, _)])
        };
        let handle = self.insist(async || self.client.submit_flow(flow()).await).await;
        let Some(handle) = handle else { return };
        for (index, task) in (0..).zip(&members) {
            let member = Member::id(&id, &of_members, index);
            self.log.write(What::Acked { task: *task, id: member.to_string() });
        }
        let steps = handle.steps();
        for (task, step) in [(first, steps.first()), (last, steps.last())] {
            if let Some(step) = step {
                self.log.write(What::Acked { task, id: step.id().to_string() });
            }
        }
    }

    /// Tasks of lanes.
    async fn submit_turns(&mut self) {
        let lane = self.random.u64(..LANES);
        let numbers: Vec<u64> = (0..self.random.u64(1..6)).map(|_| self.invoke()).collect();
        for task in &numbers {
            let (task, if_dead, lane) = (*task, IfDead::Skip, format!("l{lane}"));
            self.log.write(What::Lane { task, width: 1, if_dead, lane });
        }
        let calls = numbers.iter().map(|number| turn(*number, lane));
        let answers = ids_of(self.client.submit_all(calls).await);
        self.answered(&numbers, &answers);
    }

    /// Calls that run together with those of other clients.
    async fn submit_counted(&mut self) {
        let numbers: Vec<u64> = (0..self.random.u64(1..6)).map(|_| self.invoke()).collect();
        let calls =
            numbers.iter().map(|number| counted(Counted { number: *number, key: number % KEYS }));
        let answers = ids_of(self.client.submit_all(calls).await);
        self.answered(&numbers, &answers);
    }

    fn answered(&self, numbers: &[u64], answers: &[Result<TaskId, Error>]) {
        for (task, answer) in numbers.iter().zip(answers) {
            let task = *task;
            self.log.write(match answer {
                Ok(id) => What::Acked { task, id: id.to_string() },
                Err(problem) if problem.is_unavailable() => What::Refused { task },
                Err(problem) => {
                    if !problem.is_unknown_outcome() {
                        complain(self.settings, problem);
                    }
                    What::Unknown { task }
                }
            });
        }
    }

    /// One of two tasks now, and the other one some time later.
    async fn submit_pair(&mut self) {
        let (order, number) = (self.number(), self.number());
        self.log.write(What::After { task: number, other: order, until: Until::Success });
        let pair = [Owed::Reserve { order }, Owed::Ship { number, order }];
        let at = self.random.usize(..2);
        self.pay(pair[at]).await;
        self.owed.push(pair[1 - at]);
        if self.owed.len() > 16 {
            let owed = self.owed.swap_remove(self.random.usize(..self.owed.len()));
            self.pay(owed).await;
        }
    }

    async fn pay(&mut self, owed: Owed) {
        let task = match owed {
            Owed::Reserve { order } => order,
            Owed::Ship { number, .. } => number,
        };
        self.log.write(What::Invoke { task, biz: None, delay_ms: 0 });
        let id = match owed {
            Owed::Reserve { order } => {
                let submit = async || self.client.submit(reserve(order)).await;
                self.insist(submit).await.map(|handle| handle.id().clone())
            }
            Owed::Ship { number, order } => {
                let submit = async || self.client.submit(ship(number, order)).await;
                self.insist(submit).await.map(|handle| handle.id().clone())
            }
        };
        if let Some(id) = id {
            self.log.write(What::Acked { task, id: id.to_string() });
        }
    }
}

/// The id of each task of a submit, or why it was not stored.
fn ids_of<T>(answers: Result<Vec<TaskHandle<T>>, SubmitAllError<T>>) -> Vec<Result<TaskId, Error>> {
    let answers = match answers {
        Ok(handles) => handles.into_iter().map(Ok).collect(),
        Err(problem) => problem.answers,
    };
    answers.into_iter().map(|answer| answer.map(|handle| handle.id().clone())).collect()
}

/// The queues of all tasks of all loads.
pub(crate) const QUEUES: [&str; 2] = [QUEUE, OTHER_QUEUE];
