//! The positions of calls in a noted share of which rows are gone: [`in_positions`],
//! [`of_calls`].
//!
//! The answer of a ledger names positions, and it may be the answer to the whole share, or that to
//! what was left of it. So both are sent with the same positions. In the place of a row that is
//! gone is a copy of another call, and Redis takes a call whose id it has for a repeat.

use optimus_core::Submission;

use crate::{calls::StoredCall, noted::Share};

/// Returns what is sent for each row of a share. `calls` are those that are left, at least one.
pub(crate) fn in_positions(share: &Share, calls: &[StoredCall]) -> Vec<Submission> {
    if calls.len() == share.seqs.len() {
        return calls.iter().map(|stored| stored.call.clone()).collect();
    }
    let mut last = &calls[0];
    let sent = share.seqs.iter().map(|seq| {
        last = find(calls, *seq).unwrap_or(last);
        last.call.clone()
    });
    sent.collect()
}

/// Returns the answers for the calls that are left.
pub(crate) fn of_calls<T>(share: &Share, calls: &[StoredCall], answers: Vec<T>) -> Vec<T> {
    if calls.len() == share.seqs.len() {
        return answers;
    }
    let answers = share.seqs.iter().zip(answers);
    answers.filter(|(seq, _)| find(calls, **seq).is_some()).map(|(_, answer)| answer).collect()
}

/// Calls are in the order of their rows.
fn find(calls: &[StoredCall], seq: i64) -> Option<&StoredCall> {
    calls.binary_search_by_key(&seq, |stored| stored.seq).ok().map(|at| &calls[at])
}
