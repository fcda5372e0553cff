//! What the row of a stream has: [`Noted`], which names the calls of the batch that is under way.

use optimus_core::{QueueName, TaskId, Uuid};
use serde::{Deserialize, Serialize};

/// The largest number of a batch. A new epoch begins after it.
pub(crate) const NUMBER_MAX: u64 = (1 << 36) - 1;

/// In a share, the place of a row that was put aside since it was noted. No row has this number.
pub(crate) const GONE: i64 = 0;

/// The bits of a call number that show which slot of the ledger it uses.
const SLOT_BITS: u32 = 4;
/// The bits of a call number that have the digest.
const DIGEST_BITS: u32 = 28;

/// The parameters of FNV-1a with 64 bits. The standard hashers may change with the compiler.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// The state of a stream: which calls are noted for which ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    /// Names the ledgers. A new epoch begins when the ledgers know another history.
    pub(crate) epoch: String,
    /// How many batches were noted.
    pub(crate) number: u64,
    pub(crate) shares: Vec<Share>,
}

/// The calls of one queue that one call to Redis submits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Share {
    pub(crate) queue: QueueName,
    /// The number of that call in the ledger of the queue.
    pub(crate) call: u64,
    /// The rows, in order, and [`GONE`].
    pub(crate) seqs: Vec<i64>,
}

impl Noted {
    /// Returns the name under which Redis keeps the ledgers.
    pub(crate) fn ledger(&self) -> String {
        format!("outbox-{}", self.epoch)
    }

    /// Returns the queues with calls under way. Later calls of these wait, so that the order holds.
    pub(crate) fn queues(&self) -> Vec<&str> {
        self.shares.iter().map(|share| share.queue.as_str()).collect()
    }
}

/// Returns a name for an epoch.
pub(crate) fn new_epoch() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// Returns the number under which a batch of these tasks is sent to the ledger of its queue.
///
/// It grows with the batches in each slot, and its last digit of base 16 is the slot. Between the
/// two is a digest of the ids. So the ledger answers a call that it has had, and nothing else: if a
/// database was restored, its next batch has an old number and other calls. Without the digest, the
/// ledger would answer that it has them, and they would be lost.
pub(crate) fn call_number<'a>(number: u64, ids: impl IntoIterator<Item = &'a Uuid>) -> u64 {
    let round = number >> SLOT_BITS;
    let slot = number & ((1 << SLOT_BITS) - 1);
    (round << (SLOT_BITS + DIGEST_BITS)) | (digest(ids) << SLOT_BITS) | slot
}

fn digest<'a>(ids: impl IntoIterator<Item = &'a Uuid>) -> u64 {
    let mut hash = START;
    for id in ids {
        for byte in id.as_bytes() {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }
    (hash ^ (hash >> DIGEST_BITS) ^ (hash >> (2 * DIGEST_BITS))) & ((1 << DIGEST_BITS) - 1)
}

/// Returns the id of a row.
pub(crate) fn id_of(queue: &str, id: &str) -> Result<TaskId, String> {
    format!("{queue}/{id}").parse().map_err(|problem| format!("{problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: u128) -> Vec<Uuid> {
        (1..=count).map(|n| Uuid::from_u128(n << 60)).collect()
    }

    #[test]
    #[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
    fn the_number_of_a_call_shows_its_slot_and_grows_in_it() {
        let (few, many) = (ids(1), ids(1_000));
        for number in [0, 1, 15, 16, 17, 1 << 20, NUMBER_MAX - 16] {
            let call = call_number(number, &many);
            assert_eq!(call % 16, number % 16);
            assert!(call_number(number + 16, &few) > call, "{number}");
            // Lua compares numbers with 53 bits.
            let in_lua = |call: u64| call as f64;
            assert!(in_lua(call_number(number + 16, &few)) > in_lua(call), "{number}");
        }
    }

    #[test]
    fn batches_of_other_tasks_have_other_numbers() {
        let (mut others, first) = (ids(100), ids(100));
        assert_eq!(call_number(7, &others), call_number(7, &first));
        others.swap(3, 4);
        assert_ne!(call_number(7, &others), call_number(7, &first), "another order");
        assert_ne!(call_number(7, &ids(99)), call_number(7, &first), "one less");
        let seen: std::collections::HashSet<u64> =
            (0..10_000_u128).map(|n| call_number(7, &[Uuid::from_u128(n)])).collect();
        assert!(seen.len() > 9_990, "{}", seen.len());
    }

    #[test]
    fn a_row_has_the_id_of_its_task() {
        let id = TaskId::new("mail".parse().unwrap());
        assert_eq!(id_of("mail", &id.uuid().to_string()), Ok(id));
        assert!(id_of("mail", "7").is_err() && id_of("a b", &Uuid::nil().to_string()).is_err());
    }
}
