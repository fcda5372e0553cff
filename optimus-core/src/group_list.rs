//! Writes the results of a group into the arguments of a task that takes them as a list:
//! [`list_members`].

use crate::{
    Error,
    broker::{Broker, BrokerError, GROUP_PAGE_MAX},
    flow::ALL_MEMBERS,
    group::MemberResult,
    group_results::Handle,
};

/// What follows the handle of the group: the end of its object, and of the arguments.
const SUFFIX: &[u8] = b"}}";

/// The maximum number of bytes of a list. The handler of a longer one would need several times this
/// memory.
const LIST_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Why a list can't be made.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// Redis did not answer, or refused.
    #[error("the results of the group can't be read: {0}")]
    Unread(#[from] BrokerError),
    /// The results are not there, or are too many.
    #[error(transparent)]
    Unusable(#[from] Error),
}

/// Returns whether the arguments of a task with this suffix after its input have a list.
pub fn takes_list(suffix: &str) -> bool {
    suffix.as_bytes() == SUFFIX
}

/// Replaces the handle of a group, which Redis has written into the arguments, by the list of the
/// results.
///
/// # Errors
/// [`ListError`].
pub async fn list_members(broker: &Broker, payload: &[u8]) -> Result<Vec<u8>, ListError> {
    let Some((before, handle)) = split(payload) else { return Ok(payload.to_vec()) };
    let group = &handle.group;
    let mut list = [before, b"["].concat();
    let mut next = 0;
    while next < handle.total {
        let page = broker.group_results(group, next, GROUP_PAGE_MAX.min(handle.total - next));
        for end in page.await? {
            let json = match end {
                MemberResult::Value(json) => json,
                MemberResult::Failed(state) => {
                    return Err(Error::member_failed(group.clone(), next, state).into());
                }
                MemberResult::Pending => return Err(Error::group_forgotten(group.clone()).into()),
            };
            if next > 0 {
                list.push(b',');
            }
            list.extend(json);
            next += 1;
        }
        if list.len() > LIST_BYTES_MAX {
            return Err(Error::invalid(format!(
                "the results of the group {group} take more than {LIST_BYTES_MAX} bytes; let the \
                 task take GroupResults, which reads them a thousand at a time",
            ))
            .into());
        }
    }
    list.extend(b"]}");
    Ok(list)
}

/// Splits the arguments into what comes before the list, and the handle of the group.
fn split(payload: &[u8]) -> Option<(&[u8], Handle)> {
    let mark = ALL_MEMBERS.as_bytes();
    let at = payload.windows(mark.len()).rposition(|bytes| bytes == mark)?;
    let handle = payload[at + mark.len()..].strip_suffix(SUFFIX)?;
    Some((&payload[..at], serde_json::from_slice(handle).ok()?))
}
