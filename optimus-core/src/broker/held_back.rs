//! Plain reads of the limits and pauses that hold most tasks of a queue back.

use std::{cmp::Reverse, collections::BTreeMap};

use futures_util::future::try_join_all;

use super::{
    Broker, BrokerError,
    explain::text,
    inspect::{get, size, texts, whole},
};
use crate::{gate::Gate, id::QueueName, limit::LimitDetails};

/// At most this many classes of waiting tasks, and as many pauses, are read.
const READ_MAX: usize = 256;

/// The limits and pauses that hold most tasks of a queue back.
#[derive(Debug, Default)]
pub struct HeldBack {
    /// Those of task names and of named limits: the paused ones first, then by how many tasks wait.
    pub names: Vec<LimitDetails>,
    /// Those of lanes, by how many tasks wait.
    pub lanes: Vec<LimitDetails>,
    /// How many others there are.
    pub others: u64,
    /// Whether there may be more than that.
    pub or_more: bool,
}

/// A gate at which tasks wait, or which is paused.
#[derive(Debug)]
struct Found {
    gate: Gate,
    /// How many of the tasks that were read have to pass it.
    tasks: u64,
    is_shut: bool,
}

impl Broker {
    /// Reads the limits and pauses that hold tasks back, except that of the queue: at most `most`
    /// of lanes, and as many others. They are chosen among those of 256 classes of waiting tasks,
    /// and among 256 pauses.
    pub async fn held_back(&self, queue: &QueueName, most: usize) -> Result<HeldBack, BrokerError> {
        let (found, or_more) = self.gates_that_hold(queue).await?;
        let is_lane = |found: &Found| matches!(found.gate, Gate::Lane(_));
        let (mut lanes, mut names): (Vec<Found>, Vec<Found>) = found.into_iter().partition(is_lane);
        names.sort_by_key(|found| (!found.is_shut, Reverse(found.tasks)));
        lanes.sort_by_key(|found| (Reverse(found.tasks), !found.is_shut));
        let others = names.len().saturating_sub(most) + lanes.len().saturating_sub(most);
        let read = async |found: Vec<Found>| {
            let first = found.iter().take(most).map(|found| self.limit(queue, &found.gate));
            let details = try_join_all(first).await?.into_iter().flatten();
            // Tasks may start between two reads.
            let holds = |limit: &LimitDetails| limit.waiting > 0 || limit.shut.is_some();
            Ok::<_, BrokerError>(details.filter(holds).collect())
        };
        let (names, lanes) = (read(names).await?, read(lanes).await?);
        Ok(HeldBack { names, lanes, others: others as u64, or_more })
    }

    /// Finds the gates at which tasks wait, and those that are paused; and whether there may be
    /// more.
    async fn gates_that_hold(&self, queue: &QueueName) -> Result<(Vec<Found>, bool), BrokerError> {
        let (keys, last) = (self.keys(queue), (READ_MAX - 1).to_string());
        let commands = vec![
            get(&["ZRANGE", &keys.of("waits"), "0", &last]),
            // The pauses without an end come first, and of these the names of tasks and limits.
            get(&["ZRANGE", &keys.of("shut"), "0", &last, "REV"]),
        ];
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (classes, shut) = (texts("ZRANGE", next()?)?, texts("ZRANGE", next()?)?);
        let size_of = |class: &String| get(&["ZCARD", &keys.of(&format!("wait:{class}"))]);
        let sizes = self.read(classes.iter().map(size_of).collect()).await;
        let mut tasks: BTreeMap<&str, u64> = shut.iter().map(|name| (&**name, 0)).collect();
        for (class, count) in classes.iter().zip(sizes) {
            let count = size(&count?);
            for name in class.split('\n') {
                *tasks.entry(name).or_default() += count;
            }
        }
        let of_gate = |name: &&str| {
            let waiting = get(&["ZCARD", &keys.of(&format!("gate:{name}"))]);
            [waiting, get(&["ZSCORE", &keys.of("shut"), name])]
        };
        let now_ms = self.now_ms().await?;
        let mut answers = self.read(tasks.keys().flat_map(of_gate).collect()).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let mut found = Vec::new();
        for (name, tasks) in tasks {
            let (classes, until) = (size(&next()?), text(next()?)?);
            let is_shut = until
                .and_then(|ms| ms.parse::<f64>().ok())
                .is_some_and(|ms| ms.is_infinite() || whole(ms) > now_ms);
            let gate = Gate::from_stored(name).filter(|gate| *gate != Gate::Queue);
            if let Some(gate) = gate.filter(|_| is_shut || classes > 0) {
                found.push(Found { gate, tasks, is_shut });
            }
        }
        Ok((found, classes.len() == READ_MAX || shut.len() == READ_MAX))
    }
}
