//! How a report names the members of groups among its tasks.

use std::borrow::{Borrow, Cow};

use super::Completion;
use crate::id::QueueName;

/// Returns the members of groups as words of a call: for each run of members of one group
/// `&<first>:<last>;<last position in the group>;<home queue, '' for this one>;<group>`, with
/// positions from 1, and then the position in the group and the result of each. If all have the
/// same result, as of handlers that return `()`, `=` is before the group, and the result is there
/// once, before the positions.
pub(super) fn member_words<'a>(
    queue: &QueueName,
    done: &'a [impl Borrow<Completion>],
) -> Vec<Cow<'a, [u8]>> {
    let members: Vec<(usize, &Completion)> = (1..)
        .zip(done.iter().map(Borrow::borrow))
        .filter(|(_, done)| done.member.is_some())
        .collect();
    let runs = members
        .chunk_by(|(at, one), (next_at, next)| at + 1 == *next_at && one.group() == next.group());
    let mut words = Vec::with_capacity(2 * members.len() + 1);
    for run in runs {
        let ([(first, one), ..], [.., (last, _)]) = (run, run) else { continue };
        let Some(group) = one.group() else { continue };
        let home = if group.queue() == queue { "" } else { group.queue().as_str() };
        let is_shared = run.iter().all(|(_, done)| done.handed_on() == one.handed_on());
        let sharing = if is_shared { "=" } else { "" };
        let indexes = run.iter().filter_map(|(_, done)| Some(done.member.as_ref()?.index));
        let most = indexes.max().unwrap_or_default();
        let text = format!("&{first}:{last};{most};{home};{sharing}{}", group.stored());
        words.push(Cow::Owned(text.into_bytes()));
        if is_shared {
            words.push(Cow::Borrowed(one.handed_on()));
        }
        for (_, done) in run {
            let Some(member) = &done.member else { continue };
            words.push(Cow::Owned(member.index.to_string().into_bytes()));
            if !is_shared {
                words.push(Cow::Borrowed(done.handed_on()));
            }
        }
    }
    words
}
