//! Validated names: [`TaskId`], [`QueueName`], [`WorkerId`].

use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
    sync::Arc,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{error::Error, platform};

/// The longest queue name or namespace, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// Why a name was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// The name has no characters.
    #[error("the name is empty; use 1 to {NAME_BYTES_MAX} of [A-Za-z0-9._-]")]
    Empty,
    /// The name is longer than [`NAME_BYTES_MAX`].
    #[error("{0:?} is longer than {NAME_BYTES_MAX} bytes")]
    TooLong(String),
    /// The name has a character that could break its Redis key or cluster slot.
    #[error("{name:?} contains {found:?}; use only [A-Za-z0-9._-]")]
    Character {
        /// The refused name.
        name: String,
        /// The first character of the name that is not allowed.
        found: char,
    },
    /// The name is not a valid name of a queue.
    #[error("queue name: {0}")]
    Queue(#[source] Box<Self>),
    /// The text is not `queue/uuid`.
    #[error(
        "{0:?} is not a task id; one looks like `default/01890a5d-ac96-774b-bcce-b302099a8057`"
    )]
    NotATaskId(String),
    /// The text is not the id of a worker.
    #[error("{0:?} is not a worker's id; one looks like `web-1-4242-9f3c01ab`")]
    NotAWorkerId(String),
    /// The text is not a fingerprint of failures.
    #[error("{0:?} is not a fingerprint; one has 11 characters of `-0-9A-Z_a-z`")]
    NotAFingerprint(String),
}

impl From<InvalidName> for Error {
    fn from(problem: InvalidName) -> Self {
        Self::invalid(problem.to_string())
    }
}

/// Refuses names that could break a Redis key, its hash tag or a printed id.
///
/// # Errors
/// [`InvalidName`] names the invalid character.
pub fn validate_name(name: &str) -> Result<(), InvalidName> {
    if name.is_empty() {
        return Err(InvalidName::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(InvalidName::TooLong(name.to_owned()));
    }
    // Bytes are compared faster than characters, and each submit checks three names.
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let at = name.bytes().position(|byte| !is_of_names(byte));
    match at.and_then(|at| name[at..].chars().next()) {
        Some(found) => Err(InvalidName::Character { name: name.to_owned(), found }),
        None => Ok(()),
    }
}

/// The name of a queue. A queue can be paused, and its keys are in one slot of a Redis Cluster.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueueName(Arc<str>);

impl QueueName {
    /// The queue of tasks that name no other.
    pub const DEFAULT: &'static str = "default";

    /// Checks and wraps a name.
    ///
    /// # Errors
    /// [`InvalidName::Queue`] unless it is 1 to 128 of `[A-Za-z0-9._-]`.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
        Self::check(name.as_ref())?;
        Ok(Self(name.as_ref().into()))
    }

    /// Checks a name without making one, which takes an allocation.
    pub(crate) fn check(name: &str) -> Result<(), InvalidName> {
        validate_name(name).map_err(|problem| InvalidName::Queue(Box::new(problem)))
    }

    /// Returns a name that no queue has, for keys that are not of a queue.
    pub(crate) fn of_slot(name: &str) -> Self {
        Self(name.into())
    }

    /// Returns the name of the slot of a dispenser, which no queue can have.
    ///
    /// # Errors
    /// [`InvalidName`] unless the name could be that of a queue.
    #[doc(hidden)]
    pub fn of_dispenser(name: &str) -> Result<Self, InvalidName> {
        validate_name(name)?;
        Ok(Self(format!("@d.{name}").into()))
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for QueueName {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for QueueName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

/// Reads a name, such as that of an environment variable.
impl FromStr for QueueName {
    type Err = InvalidName;
    fn from_str(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<String> for QueueName {
    type Error = InvalidName;
    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<&str> for QueueName {
    type Error = InvalidName;
    fn try_from(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl From<QueueName> for String {
    fn from(name: QueueName) -> Self {
        name.0.as_ref().to_owned()
    }
}

/// A task's id, printed as `queue/uuid`, because the uuid alone does not show which queue has it.
///
/// An id can be converted to text and back. So a program can pass the text on and find the task
/// later, as in the path of a request:
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::{Client, InvalidName, QueueName, TaskId};
///
/// async fn status(client: &Client, path: &str) -> Result<String, Box<dyn std::error::Error>> {
///     let id: TaskId = path.trim_start_matches("/tasks/").parse()?;
///     let state = client.handle::<()>(id).status().await?;
///     Ok(format!("{state:?}"))
/// }
///
/// let id = TaskId::new(QueueName::new("mail")?);
/// assert_eq!(id.to_string().parse(), Ok(id));
/// # let _ = status;
/// # Ok::<(), InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId {
    queue: QueueName,
    uuid: Uuid,
}

impl Hash for TaskId {
    /// Hashes only the uuid, which is enough: a program rarely has one uuid in two queues. Each
    /// attempt is put into tables of ids and removed from them.
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.uuid.as_u128());
    }
}

/// The digits of stored ids, in ASCII order, so that stored ids sort like their uuids.
const ALPHABET: &[u8; 64] = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// The length of a stored id.
const STORED_BYTES: usize = 22;

/// The value of each byte in [`ALPHABET`]; 64 for a byte that is not in it.
const DIGITS: [u8; 256] = {
    let mut digits = [64; 256];
    let mut at: u8 = 0;
    while at < 64 {
        digits[ALPHABET[at as usize] as usize] = at;
        at += 1;
    }
    digits
};

fn bits_of(stored: &[u8]) -> Option<u128> {
    let stored: &[u8; STORED_BYTES] = stored.try_into().ok()?;
    let mut bits = 0_u128;
    let mut seen = 0;
    for byte in stored {
        let digit = DIGITS[usize::from(*byte)];
        seen |= digit;
        bits = bits << 6 | u128::from(digit & 63);
    }
    // The first digit has only two bits, so that the total is 128.
    (seen < 64 && DIGITS[usize::from(stored[0])] < 4).then_some(bits)
}

impl TaskId {
    /// Makes a new, time-ordered id (UUID version 7) in `queue`.
    pub fn new(queue: QueueName) -> Self {
        Self { queue, uuid: platform::new_uuid() }
    }

    /// Makes the id of this uuid.
    pub(crate) fn of(queue: QueueName, uuid: Uuid) -> Self {
        Self { queue, uuid }
    }

    /// Returns the queue of the task.
    pub fn queue(&self) -> &QueueName {
        &self.queue
    }

    /// Returns the id within its queue.
    pub fn uuid(&self) -> Uuid {
        self.uuid
    }

    /// Returns the time of [`created`](Self::created) in ms since the Unix epoch, or 0.
    #[doc(hidden)]
    pub fn made_ms(&self) -> u64 {
        let has_time = self.uuid.get_version_num() == 7;
        if has_time { (self.uuid.as_u128() >> 80) as u64 } else { 0 }
    }

    /// Returns when a client made the id, by that client's clock; `None` if the uuid is not of
    /// version 7 and so has no time.
    pub fn created(&self) -> Option<DateTime<Utc>> {
        Some(self.made_ms()).filter(|ms| *ms > 0).map(platform::instant)
    }

    /// Returns the 22 characters under which Redis stores the id. They save 14 bytes per index over
    /// the hex form.
    #[doc(hidden)]
    pub fn stored(&self) -> String {
        self.stored_bytes().map(char::from).iter().collect()
    }

    /// [`stored`](Self::stored) without an allocation.
    pub(crate) fn stored_bytes(&self) -> [u8; STORED_BYTES] {
        let bits = self.uuid.as_u128();
        std::array::from_fn(|i| ALPHABET[(bits >> (126 - 6 * i) & 63) as usize])
    }

    /// Reads the text that [`stored`](Self::stored) writes.
    ///
    /// # Errors
    /// [`InvalidName::NotATaskId`] if it is not 22 characters of the alphabet, or overflows.
    #[doc(hidden)]
    pub fn from_stored(queue: QueueName, stored: &str) -> Result<Self, InvalidName> {
        match bits_of(stored.as_bytes()) {
            Some(bits) => Ok(Self { queue, uuid: Uuid::from_u128(bits) }),
            None => Err(InvalidName::NotATaskId(stored.to_owned())),
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.uuid)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TaskId {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let invalid = || InvalidName::NotATaskId(text.to_owned());
        let (queue, uuid) = text.rsplit_once('/').ok_or_else(invalid)?;
        Ok(Self { queue: QueueName::new(queue)?, uuid: uuid.parse().map_err(|_| invalid())? })
    }
}

impl TryFrom<String> for TaskId {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.to_string()
    }
}

/// The id of one start of a worker process: `host-pid-random`, never used twice.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(Arc<str>);

impl WorkerId {
    /// Makes a new id for this process on `host`. Characters that are not allowed in a key become
    /// `-`.
    #[doc(hidden)]
    pub fn generate(host: &str, pid: u32) -> Self {
        let host: String = host
            .chars()
            .take(NAME_BYTES_MAX)
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' })
            .collect();
        let random = fastrand::u32(..) ^ platform::salt();
        Self(format!("{host}-{pid}-{random:08x}").into())
    }

    /// Wraps an id that was read from Redis.
    #[doc(hidden)]
    pub fn from_stored(stored: &str) -> Self {
        Self(stored.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads an id as a worker prints and logs it.
impl FromStr for WorkerId {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let mut parts = text.rsplitn(3, '-');
        let random = parts.next().filter(|part| part.len() == 8 && is_hex(part));
        let pid = parts.next().and_then(|part| part.parse::<u32>().ok());
        let host = parts.next().filter(|part| part.len() <= NAME_BYTES_MAX);
        let is_id = random.is_some() && pid.is_some() && host.is_some_and(|h| !h.is_empty());
        if !is_id || !text.chars().all(is_allowed) {
            return Err(InvalidName::NotAWorkerId(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl fmt::Debug for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
#[path = "id_tests.rs"]
mod tests;
