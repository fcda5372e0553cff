//! The results of a group, as its callback reads them: [`GroupResults`].

use std::{collections::VecDeque, fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Error,
    broker::GROUP_PAGE_MAX,
    client::Client,
    group::MemberResult,
    id::{QueueName, TaskId},
    state::TaskState,
};

/// The results of a group that has ended. A callback takes it as an argument, instead of a `Vec`,
/// if there are too many results for the memory, or if members may have failed.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{Error, GroupResults, MemberEnd};
///
/// // The body of a function with `#[optimus::task]`.
/// async fn sum(counts: GroupResults<u64>) -> Result<u64, Error> {
///     let (mut sum, mut ends) = (0, counts.read());
///     while let Some((shard, end)) = ends.next().await? {
///         match end {
///             MemberEnd::Success(count) => sum += count,
///             MemberEnd::Failed(state) => println!("shard {shard} is {state}"),
///         }
///     }
///     Ok(sum)
/// }
/// # let _ = sum;
/// ```
pub struct GroupResults<T> {
    handle: Handle,
    client: Option<Client>,
    results: PhantomData<fn() -> T>,
}

/// The stored form.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Handle {
    #[serde(rename = "$group", with = "stored_id")]
    pub(crate) group: TaskId,
    pub(crate) total: u32,
    failed: u32,
    cancelled: u32,
    /// The ends themselves, in results that a test has made.
    #[serde(rename = "ends", default, skip_serializing_if = "Option::is_none")]
    given: Option<Vec<GivenEnd>>,
}

/// The end of a member that a test has made.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum GivenEnd {
    Success(Value),
    Failed(String),
}

/// The id of a group as Redis writes it: `<queue>/<stored id>`.
mod stored_id {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use crate::{after::Prerequisite, id::TaskId};

    pub(super) fn serialize<S: Serializer>(id: &TaskId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", id.queue(), id.stored()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<TaskId, D::Error> {
        let text = String::deserialize(from)?;
        match Prerequisite::from_reference(&text) {
            Some(Prerequisite::Task(id)) => Ok(id),
            _ => Err(D::Error::custom(format!("{text:?} is not the id of a group"))),
        }
    }
}

impl GivenEnd {
    fn of<T: Serialize>(end: MemberEnd<T>) -> Self {
        match end {
            MemberEnd::Success(result) => {
                Self::Success(serde_json::to_value(result).expect("a result is JSON"))
            }
            MemberEnd::Failed(state) => Self::Failed(state.as_str().to_owned()),
        }
    }

    fn result(&self) -> MemberResult {
        match self {
            Self::Success(result) => MemberResult::Value(result.to_string().into_bytes()),
            Self::Failed(word) => {
                MemberResult::Failed(TaskState::from_word(word).unwrap_or(TaskState::Dead))
            }
        }
    }
}

/// How a member of a group has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberEnd<T> {
    /// The result of the member.
    Success(T),
    /// The state of a member that did not succeed; `Forgotten` if it was deleted.
    Failed(TaskState),
}

impl<T> GroupResults<T> {
    pub(crate) fn new(client: Client, group: TaskId, [total, failed, cancelled]: [u32; 3]) -> Self {
        let handle = Handle { group, total, failed, cancelled, given: None };
        Self { handle, client: Some(client), results: PhantomData }
    }

    /// Makes the results of a group whose members have all succeeded, for tests of a callback. They
    /// need no store.
    ///
    /// # Panics
    /// If a result can't be encoded as JSON.
    pub fn of(results: impl IntoIterator<Item = T>) -> Self
    where
        T: Serialize,
    {
        Self::of_ends(results.into_iter().map(MemberEnd::Success))
    }

    /// Makes the results of a group from the ends of its members, for tests of a callback. They
    /// need no store.
    ///
    /// ```
    /// # use optimus_core as optimus;
    /// use optimus::{GroupResults, MemberEnd, TaskState};
    ///
    /// let counts = GroupResults::of_ends([
    ///     MemberEnd::Success(7),
    ///     MemberEnd::Failed(TaskState::Dead),
    /// ]);
    /// assert_eq!((counts.total(), counts.failed()), (2, 1));
    /// ```
    ///
    /// # Panics
    /// If a result can't be encoded as JSON.
    pub fn of_ends(ends: impl IntoIterator<Item = MemberEnd<T>>) -> Self
    where
        T: Serialize,
    {
        let given: Vec<GivenEnd> = ends.into_iter().map(GivenEnd::of).collect();
        let count = |wanted: TaskState| {
            let is_so =
                |end: &&GivenEnd| matches!(end, GivenEnd::Failed(word) if word == wanted.as_str());
            u32::try_from(given.iter().filter(is_so).count()).unwrap_or(u32::MAX)
        };
        let (failed, cancelled) = (count(TaskState::Dead), count(TaskState::Cancelled));
        let total = u32::try_from(given.len()).unwrap_or(u32::MAX);
        let queue = QueueName::new(QueueName::DEFAULT).expect("a valid name");
        let group = TaskId::new(queue);
        let handle = Handle { group, total, failed, cancelled, given: Some(given) };
        Self { handle, client: None, results: PhantomData }
    }

    /// Returns the id of the group.
    pub fn id(&self) -> &TaskId {
        &self.handle.group
    }

    /// Returns the number of members.
    pub fn total(&self) -> u32 {
        self.handle.total
    }

    /// Returns how many members are Dead. The group has ended without them.
    pub fn failed(&self) -> u32 {
        self.handle.failed
    }

    /// Returns how many members were cancelled.
    pub fn cancelled(&self) -> u32 {
        self.handle.cancelled
    }

    /// Reads how members have ended, from that position on.
    async fn page(&self, first: u32) -> Result<Vec<MemberResult>, Error> {
        let count = GROUP_PAGE_MAX.min(self.total() - first);
        let Some(given) = &self.handle.given else {
            return Ok(self.client()?.broker().group_results(self.id(), first, count).await?);
        };
        let some = given.iter().skip(first as usize).take(count as usize);
        Ok(some.map(GivenEnd::result).collect())
    }

    fn client(&self) -> Result<Client, Error> {
        self.client.as_ref().map_or_else(Client::current, |client| Ok(client.clone()))
    }
}

impl<T: DeserializeOwned> GroupResults<T> {
    /// Reads how the members have ended, one after another in the order of the calls. A thousand of
    /// them are in memory at a time.
    pub fn read(&self) -> MemberEnds<'_, T> {
        MemberEnds { of: self, next: 0, page: VecDeque::new() }
    }

    /// Reads all results, in the order of the calls.
    ///
    /// # Errors
    /// [`Error::is_dead`] or [`Error::is_cancelled`] if a member has failed;
    /// [`Error::is_forgotten`] if the results are no longer kept; [`Error::is_unavailable`].
    pub async fn all(&self) -> Result<Vec<T>, Error> {
        let mut results = Vec::new();
        let mut ends = self.read();
        while let Some((index, end)) = ends.next().await? {
            match end {
                MemberEnd::Success(result) => results.push(result),
                MemberEnd::Failed(state) => {
                    return Err(Error::member_failed(self.id().clone(), index, state));
                }
            }
        }
        Ok(results)
    }
}

/// The ends of the members of a group, one after another: see [`GroupResults::read`].
#[must_use = "nothing is read before `.next().await`"]
pub struct MemberEnds<'a, T> {
    of: &'a GroupResults<T>,
    next: u32,
    /// The members from `next` on.
    page: VecDeque<MemberResult>,
}

impl<T: DeserializeOwned> MemberEnds<'_, T> {
    /// Reads the next member: its place among the calls from 0, and how it has ended. `None` after
    /// the last.
    ///
    /// # Errors
    /// [`Error::is_forgotten`] if the results are no longer kept; [`Error::is_unavailable`];
    /// a result that is not a `T`.
    pub async fn next(&mut self) -> Result<Option<(u32, MemberEnd<T>)>, Error> {
        if self.next >= self.of.total() {
            return Ok(None);
        }
        let group = self.of.id();
        if self.page.is_empty() {
            self.page = self.of.page(self.next).await?.into();
        }
        let index = self.next;
        let end = match self.page.pop_front() {
            Some(MemberResult::Value(json)) => {
                let result = serde_json::from_slice(&json);
                MemberEnd::Success(
                    result.map_err(|problem| Error::wrong_result(group.clone(), problem))?,
                )
            }
            Some(MemberResult::Failed(state)) => MemberEnd::Failed(state),
            Some(MemberResult::Pending) | None => {
                return Err(Error::group_forgotten(group.clone()));
            }
        };
        self.next += 1;
        Ok(Some((index, end)))
    }
}

impl<T> Clone for GroupResults<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), client: self.client.clone(), results: PhantomData }
    }
}

impl<T> fmt::Debug for GroupResults<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupResults({}, {} members)", self.handle.group, self.handle.total)
    }
}

impl<T> fmt::Debug for MemberEnds<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberEnds({} of {:?})", self.next, self.of)
    }
}

impl<T> Serialize for GroupResults<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.handle.serialize(serializer)
    }
}

/// In a handler the results are read through the client of its worker.
impl<'de, T> Deserialize<'de> for GroupResults<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let handle = Handle::deserialize(deserializer)?;
        Ok(Self { handle, client: Client::current().ok(), results: PhantomData })
    }
}

#[cfg(test)]
#[path = "group_results_tests.rs"]
mod tests;
