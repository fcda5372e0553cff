//! `enroll`, `disband`, and reads of groups.

use std::{collections::BTreeMap, time::Duration};

use super::{
    Broker, BrokerError, ScriptCall,
    inspect::{get, state, texts},
    reply::plain_list,
    scripts,
};
use crate::{
    after::PrerequisiteFailure,
    group::{GroupProgress, MemberResult},
    id::{QueueName, TaskId},
    record_json::millis,
    state::TaskState,
};

/// How many results one read returns at most.
pub const GROUP_PAGE_MAX: u32 = 1_000;

/// The name of an addition of no members, which says that some members have several steps.
pub const PARTS: &str = "parts";

/// Members that are added to a group.
#[derive(Debug, Clone, Copy)]
pub struct Enroll<'a> {
    /// A name for this addition. A repetition under the same name gets the same positions, if the
    /// group was not cancelled.
    pub operation: &'a str,
    /// How many members are added.
    pub count: u32,
    /// The queues of these members.
    pub queues: &'a [QueueName],
    /// Whether the group ends once all its members have ended. Until it is sealed, it waits for
    /// more.
    pub seal: bool,
    /// How long the group is kept: the results after its end, or a group that lacks a member since
    /// the last addition. `None` changes nothing.
    pub keep: Option<Duration>,
    /// What a member that fails does to the group, for a new group.
    pub on_failure: PrerequisiteFailure,
    /// What distinguishes these calls from others under the same name; may be empty.
    pub digest: &'a str,
    /// The name of the submit, by which it knows a group that it has made although the answer was
    /// lost; may be empty.
    pub submit: &'a str,
    /// Whether an earlier addition has made the group. Then this one makes none.
    pub is_later: bool,
}

/// The answer to an addition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enrolled {
    /// The members have the positions from `first`.
    Added {
        /// The position of the first one.
        first: u32,
        /// How many members the group has now.
        total: u32,
        /// Whether the addition was made by this call, or by an earlier one of the submit that has
        /// made the group.
        is_new: bool,
        /// Whether effects on other queues were posted, for a relay.
        posted: bool,
        /// When the group was made, in ms: see [`Trace::Member`](crate::submission::Trace::Member).
        born: u64,
    },
    /// Nothing was added: the group has ended in this state.
    Ended(TaskState),
    /// Nothing was added: other calls were added under the same name.
    Other,
    /// Nothing was added: an earlier addition has made the group, and nothing is known of it.
    Gone,
}

impl Broker {
    /// Adds members to a group, and creates it if it does not exist. A group without members that
    /// is sealed ends at once.
    pub async fn enroll(
        &self,
        group: &TaskId,
        members: Enroll<'_>,
    ) -> Result<Enrolled, BrokerError> {
        let Enroll { operation, count, queues, seal, keep, on_failure, digest, .. } = members;
        let stored = group.stored();
        let mut call = ScriptCall::new(&scripts::ENROLL, &self.keys(group.queue()), &stored)
            .arg(&self.now)
            .arg(&stored)
            .arg(operation)
            .arg(count)
            .arg(if seal { "1" } else { "" })
            .arg(keep.map_or_else(String::new, |keep| millis(keep).max(1).to_string()))
            .arg(stored_policy(on_failure))
            .arg(digest)
            .arg(members.submit)
            .arg(if members.is_later { "1" } else { "" });
        for queue in queues {
            call.push(queue);
        }
        let mut reply = self.run_surely(call).await?;
        let words = reply.next_texts(6)?;
        let wrong = || BrokerError::UnexpectedReply(format!("enroll answered {words:?}"));
        if words[0] == "ended" {
            return state(&words[1]).map(Enrolled::Ended);
        }
        if words[0] == "other" {
            return Ok(Enrolled::Other);
        }
        if words[0] == "gone" {
            return Ok(Enrolled::Gone);
        }
        let first = words[1].parse().map_err(|_| wrong())?;
        let total = words[2].parse().map_err(|_| wrong())?;
        let (is_new, posted) = (words[3] == "1", words[4] == "1");
        let born = words[5].parse().map_err(|_| wrong())?;
        Ok(Enrolled::Added { first, total, is_new, posted, born })
    }

    /// Cancels a group: tasks that wait for it learn that it was cancelled, and its members no
    /// longer count. The members themselves continue. Returns how far it was, and whether effects
    /// were posted; `None` if nothing is known of it.
    pub async fn disband(
        &self,
        group: &TaskId,
    ) -> Result<Option<(GroupProgress, bool)>, BrokerError> {
        let stored = group.stored();
        let call = ScriptCall::new(&scripts::DISBAND, &self.keys(group.queue()), &stored)
            .arg(&self.now)
            .arg(&stored)
            .arg("");
        let posted = self.run_surely(call).await?.flag()?;
        Ok(self.group(group).await?.map(|progress| (progress, posted)))
    }

    /// Removes a group, of which nothing is known then. Those who wait for it learn that it was
    /// cancelled. Returns whether effects were posted.
    pub async fn forget_group(&self, group: &TaskId) -> Result<bool, BrokerError> {
        let stored = group.stored();
        let call = ScriptCall::new(&scripts::DISBAND, &self.keys(group.queue()), &stored)
            .arg(&self.now)
            .arg(&stored)
            .arg("1");
        self.run_surely(call).await?.flag()
    }

    /// Reads how far a group is; `None` if nothing is known of it.
    pub async fn group(&self, group: &TaskId) -> Result<Option<GroupProgress>, BrokerError> {
        const FIELDS: [&str; 9] =
            ["total", "sealed", "done", "failed", "cancelled", "lost", "state", "queues", "policy"];
        let key = self.keys(group.queue()).group(group);
        let mut command = get(&["HMGET", &key]);
        for field in FIELDS {
            command.arg(field);
        }
        let found = texts("HMGET", self.read_one(command).await?)?;
        let number = |at: usize| found.get(at).and_then(|text| text.parse().ok()).unwrap_or(0);
        if found.first().is_none_or(String::is_empty) {
            return Ok(None);
        }
        let ended = match found.get(6).map(String::as_str) {
            None | Some("") => None,
            Some(word) => Some(state(word)?),
        };
        Ok(Some(GroupProgress {
            total: number(0),
            is_sealed: number(1) == 1,
            done: number(2),
            failed: number(3),
            cancelled: number(4),
            lost: number(5),
            requeued: 0,
            ended,
            on_member_failure: read_policy(found.get(8).map_or("", |text| text)),
            queues: found
                .get(7)
                .map_or("", |text| text)
                .split_whitespace()
                .filter_map(|name| QueueName::new(name).ok())
                .collect(),
        }))
    }

    /// Returns the records of tasks as they are stored; empty for those that have none.
    pub async fn stored_records(&self, ids: &[&TaskId]) -> Result<Vec<Vec<u8>>, BrokerError> {
        let mut of_queues: BTreeMap<&QueueName, Vec<usize>> = BTreeMap::new();
        for (place, id) in ids.iter().enumerate() {
            of_queues.entry(id.queue()).or_default().push(place);
        }
        let mut records = vec![Vec::new(); ids.len()];
        for (queue, places) in of_queues {
            let mut command = get(&["HMGET", &self.keys(queue).of("tasks")]);
            for place in &places {
                command.arg(ids[*place].stored());
            }
            let found = plain_list("HMGET", self.read_one(command).await?)?;
            for (place, record) in places.into_iter().zip(found) {
                records[place] = record;
            }
        }
        Ok(records)
    }

    /// Returns whether members of the group have several steps: whether members were added under
    /// the name [`PARTS`].
    pub async fn group_has_parts(&self, group: &TaskId) -> Result<bool, BrokerError> {
        let key = self.keys(group.queue()).group(group);
        let found = self.read_one(get(&["HMGET", &key, &format!("+{PARTS}")])).await?;
        Ok(texts("HMGET", found)?.first().is_some_and(|text| !text.is_empty()))
    }

    /// Returns the position and the queue of the member whose failure has cancelled a group.
    pub async fn cancelled_by(
        &self,
        group: &TaskId,
    ) -> Result<Option<(u32, QueueName)>, BrokerError> {
        let key = self.keys(group.queue()).group(group);
        let found = texts("HMGET", self.read_one(get(&["HMGET", &key, "by"])).await?)?;
        let by = found.first().and_then(|text| text.split_once(' '));
        Ok(by.and_then(|(index, queue)| Some((index.parse().ok()?, QueueName::new(queue).ok()?))))
    }

    /// Reads what some members of a group have brought, up to [`GROUP_PAGE_MAX`] from that position
    /// on.
    pub async fn group_results(
        &self,
        group: &TaskId,
        first: u32,
        count: u32,
    ) -> Result<Vec<MemberResult>, BrokerError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut command = get(&["HMGET", &self.keys(group.queue()).group_results(group)]);
        for index in first..first.saturating_add(count.min(GROUP_PAGE_MAX)) {
            command.arg(index);
        }
        let found = plain_list("HMGET", self.read_one(command).await?)?;
        found.into_iter().map(member_result).collect()
    }
}

/// Returns how Redis stores what a member that fails does to its group.
fn stored_policy(on_failure: PrerequisiteFailure) -> &'static str {
    match on_failure {
        PrerequisiteFailure::Wait => "",
        PrerequisiteFailure::Cancel => "1",
        PrerequisiteFailure::Run => "2",
    }
}

fn read_policy(stored: &str) -> PrerequisiteFailure {
    match stored {
        "1" => PrerequisiteFailure::Cancel,
        "2" => PrerequisiteFailure::Run,
        _ => PrerequisiteFailure::Wait,
    }
}

/// Reads a result of a member: JSON, or `!` and a state.
fn member_result(stored: Vec<u8>) -> Result<MemberResult, BrokerError> {
    Ok(match stored.split_first() {
        None => MemberResult::Pending,
        Some((b'!', word)) => MemberResult::Failed(state(&String::from_utf8_lossy(word))?),
        Some(_) => MemberResult::Value(stored),
    })
}
