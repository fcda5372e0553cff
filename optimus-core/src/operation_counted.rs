//! The tasks that an operation has counted: [`Chunk`], [`Counted`], [`Mark`].

use uuid::Uuid;

use crate::{
    broker::Row,
    id::{QueueName, TaskId},
    state::TaskState,
};

/// How many bytes a task takes: its id, and its mark.
const TASK_BYTES: usize = ID_BYTES + MARK_BYTES;
const ID_BYTES: usize = 16;
const MARK_BYTES: usize = 6;
/// The mark of a task that has ended is larger than this, as in `operation_batch.lua`.
const ENDED: u64 = 1 << 47;

/// What shows whether a task is still as it was counted: the ms when it ended, or when its last
/// attempt failed. Both are compared for equality alone, so no clock matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark(u64);

impl Mark {
    /// Of a dead or cancelled task that ended at this ms.
    pub fn ended(ms: u64) -> Self {
        Self(ENDED + ms)
    }

    /// Of another task, whose last attempt failed at this ms; 0 if none has.
    pub fn failed(ms: u64) -> Self {
        Self(ms)
    }

    /// Of a task on a page.
    pub(crate) fn of(state: TaskState, row: &Row) -> Self {
        if state.is_terminal() {
            return Self::ended(row.at_ms.unwrap_or_default());
        }
        let digits = row.error.split(|c: char| !c.is_ascii_digit()).next();
        Self::failed(digits.and_then(|ms| ms.parse().ok()).unwrap_or_default())
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }
}

/// A task that an operation has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The id of the task.
    pub id: TaskId,
    /// What shows whether it is still as it was then.
    pub mark: Mark,
}

/// Some counted tasks of one queue, in the order in which they are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) queue: QueueName,
    pub(crate) tasks: Vec<Counted>,
}

impl Chunk {
    /// Returns the bytes that are stored: the queue, a newline, and 22 bytes a task.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = self.queue.as_str().as_bytes().to_vec();
        bytes.push(b'\n');
        for Counted { id, mark } in &self.tasks {
            bytes.extend(id.uuid().as_bytes());
            bytes.extend(&mark.0.to_be_bytes()[8 - MARK_BYTES..]);
        }
        bytes
    }

    /// Reads what [`encode`](Self::encode) writes.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let queue = QueueName::new(str::from_utf8(&bytes[..end]).ok()?).ok()?;
        let (tasks, rest) = bytes[end + 1..].as_chunks::<TASK_BYTES>();
        let read = |task: &[u8; TASK_BYTES]| {
            let (id, mark) = task.split_at(ID_BYTES);
            let uuid = Uuid::from_slice(id).ok()?;
            let mark = mark.iter().fold(0, |mark, byte| mark << 8 | u64::from(*byte));
            Some(Counted { id: TaskId::of(queue.clone(), uuid), mark: Mark(mark) })
        };
        let tasks = tasks.iter().map(read).collect::<Option<_>>()?;
        rest.is_empty().then_some(Self { queue, tasks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_read_as_it_was_written_and_other_bytes_are_none() {
        let queue = QueueName::new("mail").unwrap();
        let id = |number| TaskId::of(queue.clone(), Uuid::from_u128(number));
        let tasks = vec![
            Counted { id: id(7), mark: Mark::failed(0) },
            Counted { id: id(u128::MAX), mark: Mark::ended(1_800_000_000_123) },
        ];
        let chunk = Chunk { queue: queue.clone(), tasks };
        let bytes = chunk.encode();
        assert_eq!(bytes.len(), 5 + 2 * 22);
        assert_eq!(Chunk::decode(&bytes), Some(chunk));
        for wrong in [&b""[..], b"mail", b"\n", b"a b\n", b"mail\nx", &bytes[..bytes.len() - 1]] {
            assert_eq!(Chunk::decode(wrong), None, "{wrong:?}");
        }
    }
}
