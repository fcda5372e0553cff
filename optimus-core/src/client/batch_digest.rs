//! Tells whether calls are the same that were added to a group before: [`digest_of`].

use crate::flow::Stage;

/// The parameters of FNV-1a with 64 bits. The standard hashers may change with the compiler.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0100_0000_01b3;

/// Returns a digest of the members of a batch: how many there are, and the task and the queue of
/// each step. Arguments don't count: maps and times in them may differ although the calls are the
/// same, and the first submit decides.
pub(super) fn digest_of(batch: &[Vec<Stage<'_>>]) -> String {
    let mut hash = START;
    for stages in batch {
        for stage in stages {
            // A group within a member is compared when it is submitted itself.
            if let Stage::Task(task) = stage
                && let Ok(submission) = &task.made
            {
                add(&mut hash, submission.task.as_bytes());
                add(&mut hash, submission.id.queue().as_str().as_bytes());
            }
            add(&mut hash, b"then");
        }
        add(&mut hash, b"beside");
    }
    format!("{}-{hash:016x}", batch.len())
}

/// Returns the digest of the last batch of a group, which differs from that of the same members
/// before others.
pub(super) fn digest_of_last(batch: &[Vec<Stage<'_>>]) -> String {
    digest_of(batch) + "."
}

fn add(hash: &mut u64, text: &[u8]) {
    // No text has this byte.
    for byte in text.iter().chain([&0xff]) {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    }
}
