//! `resize`, and plain reads of lanes: those in which tasks wait, and the tasks of one lane.

use std::{cmp::Reverse, collections::HashSet, num::NonZeroU16};

use chrono::{DateTime, Utc};
use futures_util::{future::try_join_all, try_join};
use redis::Value;

use super::{
    Broker, BrokerError,
    inspect::{get, size, stored_id, texts, whole},
    reply, scripts,
};
use crate::{
    gate::Gate,
    id::{QueueName, TaskId},
    limit::{LimitDetails, Shut},
    platform::instant,
};

/// At most this many holders of a lane are read.
const HOLDERS_MAX: &str = "16";

/// At most this many pauses of a queue are read to find those of lanes.
const SHUT_MAX: usize = 256;

/// At most this many lanes are read to find those in which most tasks wait.
const COMPARED_MAX: usize = 64;

/// A lane in which tasks wait.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneDetails {
    /// Its key.
    pub key: String,
    /// Since when tasks wait in it without a break, by Redis' clock; since when it is paused, if
    /// only tasks whose turn it is wait, for its end.
    pub since: DateTime<Utc>,
    /// How many tasks wait, in state [`Blocked`](crate::TaskState::Blocked).
    pub waiting: u64,
    /// The tasks that they wait for, at most 16. They are Ready, Working or, in a lane of width 1,
    /// in Retry or Delayed between two attempts, or Dead.
    pub holders: Vec<TaskId>,
    /// Those of the holders that are Dead. Each keeps its place in the lane until it is requeued or
    /// deleted, so a lane whose holders are all Dead is blocked.
    pub dead: Vec<TaskId>,
    /// The width that was set at run time, which is used instead of that of the tasks.
    pub width_set: Option<NonZeroU16>,
    /// Its pause, if it is paused.
    pub shut: Option<Shut>,
}

/// The result of a call that sets the width of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resized {
    /// The width that was set before.
    pub before: Option<NonZeroU16>,
    /// Whether a repeated call offers more tasks.
    pub more: bool,
}

impl Broker {
    /// Lanes in which tasks wait, those first that have waited longest.
    pub async fn lanes(
        &self,
        queue: &QueueName,
        limit: usize,
    ) -> Result<Vec<LaneDetails>, BrokerError> {
        let keys = self.keys(queue);
        let last = limit.saturating_sub(1).to_string();
        let all = get(&["ZRANGE", &keys.of("lanes"), "0", &last, "WITHSCORES"]);
        let all = texts("ZRANGE", self.read_one(all).await?)?;
        let mut commands = Vec::new();
        for lane in all.chunks_exact(2) {
            let key = keys.of(&format!("lane:{}", lane[0]));
            commands.push(get(&["ZCOUNT", &key, "0", "+inf"]));
            commands.push(get(&["ZRANGEBYSCORE", &key, "-1", "-1", "LIMIT", "0", HOLDERS_MAX]));
            commands.push(get(&["HGET", &keys.of("widths"), &lane[0]]));
            let gate = Gate::Lane(lane[0].clone()).stored();
            commands.push(get(&["ZSCORE", &keys.of("shut"), &gate]));
        }
        let mut answers = self.read(commands).await.into_iter();
        let mut next = || answers.next().expect("an answer for each call");
        let (mut lanes, mut shut) = (Vec::new(), Vec::new());
        for lane in all.chunks_exact(2) {
            let (waiting, holders) = (size(&next()?), texts("ZRANGEBYSCORE", next()?)?);
            lanes.push(LaneDetails {
                key: lane[0].clone(),
                since: instant(lane[1].parse().map_or(0, whole)),
                waiting,
                holders: holders.iter().filter_map(|id| stored_id(queue, id)).collect(),
                dead: Vec::new(),
                width_set: width_of(next()?)?,
                shut: None,
            });
            if next()? != Value::Nil {
                shut.push(lane[0].as_str());
            }
        }
        let holders: Vec<TaskId> = lanes.iter().flat_map(|lane| lane.holders.clone()).collect();
        let (pauses, dead) =
            try_join!(self.lane_limits(queue, &shut), self.dead_tasks(queue, &holders))?;
        let dead: HashSet<TaskId> = dead.into_iter().collect();
        for lane in &mut lanes {
            lane.dead = lane.holders.iter().filter(|id| dead.contains(id)).cloned().collect();
            let gate = Gate::Lane(lane.key.clone());
            let pause = pauses.iter().find(|limit| limit.gate == gate);
            lane.shut = pause.and_then(|limit| limit.shut.clone());
        }
        // The lanes are read after their names, and the last task of one may have left meanwhile.
        lanes.retain(|lane| lane.waiting > 0);
        Ok(lanes)
    }

    /// [`lanes`](Self::lanes), and then paused lanes in which only tasks wait whose turn it is.
    pub async fn lanes_and_paused(
        &self,
        queue: &QueueName,
        limit: usize,
    ) -> Result<Vec<LaneDetails>, BrokerError> {
        let mut lanes = self.lanes(queue, limit).await?;
        let more = limit.saturating_sub(lanes.len());
        if more > 0 {
            lanes.extend(self.paused_lanes(queue, &lanes, more).await?);
        }
        Ok(lanes)
    }

    /// Paused lanes in which only tasks wait whose turn it is, except the `known` ones: at most
    /// `limit`, of 256 pauses of the queue. Such a lane has no task that waits for another one.
    async fn paused_lanes(
        &self,
        queue: &QueueName,
        known: &[LaneDetails],
        limit: usize,
    ) -> Result<Vec<LaneDetails>, BrokerError> {
        let last = (SHUT_MAX - 1).to_string();
        // The pauses without an end come first.
        let shut = get(&["ZRANGE", &self.keys(queue).of("shut"), "0", &last, "REV"]);
        let shut = texts("ZRANGE", self.read_one(shut).await?)?;
        let gates = shut.iter().filter_map(|name| Gate::from_stored(name));
        let keys = gates.filter_map(|gate| match gate {
            Gate::Lane(key) => Some(key),
            _ => None,
        });
        let is_new = |key: &String| known.iter().all(|lane| lane.key != *key);
        let keys: Vec<String> = keys.filter(is_new).take(limit).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let limits = self.lane_limits(queue, &keys).await?;
        let mut lanes = Vec::new();
        for LimitDetails { gate, waiting, shut, .. } in limits {
            if let (Gate::Lane(key), Some(shut), 1..) = (gate, shut, waiting) {
                let (width_set, since) = (self.width_set(queue, &key).await?, shut.since);
                let (holders, dead, shut) = (Vec::new(), Vec::new(), Some(shut));
                lanes.push(LaneDetails { key, since, waiting, holders, dead, width_set, shut });
            }
        }
        Ok(lanes)
    }

    /// Reads the limits and pauses of lanes.
    async fn lane_limits(
        &self,
        queue: &QueueName,
        keys: &[&str],
    ) -> Result<Vec<LimitDetails>, BrokerError> {
        let gates: Vec<Gate> = keys.iter().map(|key| Gate::Lane((*key).to_owned())).collect();
        let found = try_join_all(gates.iter().map(|gate| self.limit(queue, gate))).await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Reads the lanes in which most tasks wait, at most `most` of the 64 that have waited longest,
    /// and how many lanes there are in all.
    pub async fn fullest_lanes(
        &self,
        queue: &QueueName,
        most: usize,
    ) -> Result<(Vec<LaneDetails>, u64), BrokerError> {
        let mut lanes = self.lanes(queue, COMPARED_MAX).await?;
        let count = size(&self.read_one(get(&["ZCARD", &self.keys(queue).of("lanes")])).await?);
        let count = count.max(lanes.len() as u64);
        lanes.sort_by_key(|lane| Reverse(lane.waiting));
        lanes.truncate(most);
        Ok((lanes, count))
    }

    /// Sets the width of a lane at run time; `None` removes what was set. A call offers a limited
    /// number of tasks.
    pub async fn resize(
        &self,
        queue: &QueueName,
        lane: &str,
        width: Option<NonZeroU16>,
    ) -> Result<Resized, BrokerError> {
        let call = self.call(&scripts::RESIZE, queue, "").arg(lane);
        let call = call.arg(width.map(|width| width.to_string()).unwrap_or_default());
        let mut reply = self.run_surely(call).await?;
        let before = NonZeroU16::new(reply.number()?);
        Ok(Resized { before, more: reply.flag()? })
    }

    /// Reads the width of a lane that was set at run time.
    pub async fn width_set(
        &self,
        queue: &QueueName,
        lane: &str,
    ) -> Result<Option<NonZeroU16>, BrokerError> {
        let widths = self.keys(queue).of("widths");
        width_of(self.read_one(get(&["HGET", &widths, lane])).await?)
    }

    /// Returns the place of the last task that waits in a lane.
    pub async fn last_place_in_lane(
        &self,
        queue: &QueueName,
        lane: &str,
    ) -> Result<u64, BrokerError> {
        let key = self.keys(queue).of(&format!("lane:{lane}"));
        let last = get(&["ZRANGE", &key, "-1", "-1", "WITHSCORES"]);
        let last = texts("ZRANGE", self.read_one(last).await?)?;
        Ok(last.get(1).and_then(|place| place.parse().ok()).map_or(0, whole))
    }

    /// Returns the first tasks that wait in a lane, up to a place.
    pub async fn waiting_in_lane(
        &self,
        queue: &QueueName,
        lane: &str,
        last: u64,
        most: usize,
    ) -> Result<Vec<TaskId>, BrokerError> {
        let key = self.keys(queue).of(&format!("lane:{lane}"));
        let (last, most) = (last.to_string(), most.to_string());
        let waiting = get(&["ZRANGEBYSCORE", &key, "0", &last, "LIMIT", "0", &most]);
        let waiting = texts("ZRANGEBYSCORE", self.read_one(waiting).await?)?;
        Ok(waiting.iter().filter_map(|id| stored_id(queue, id)).collect())
    }

    /// Returns the tasks of a lane that have a permit, or wait for their next attempt.
    pub async fn holders_of_lane(
        &self,
        queue: &QueueName,
        lane: &str,
    ) -> Result<Vec<TaskId>, BrokerError> {
        let key = self.keys(queue).of(&format!("lane:{lane}"));
        let holders = self.read_one(get(&["ZRANGEBYSCORE", &key, "-2", "-1"])).await?;
        let holders = texts("ZRANGEBYSCORE", holders)?;
        Ok(holders.iter().filter_map(|id| stored_id(queue, id)).collect())
    }
}

/// Reads a width that was set at run time.
pub(super) fn width_of(set: Value) -> Result<Option<NonZeroU16>, BrokerError> {
    let set = reply::plain_bytes("HGET", set)?;
    Ok(set.and_then(|bytes| String::from_utf8_lossy(&bytes).parse().ok()))
}
