//! Tests the replies of scripts, in the form in which Redis sends them.

use std::fmt::Debug;

use optimus_core::{
    QueueName, TaskId, Token,
    broker::{Broker, BrokerError, Reply},
};

use crate::draw::Draw;

/// The number of tasks in the batch of a submit.
const TASKS: usize = 3;

/// Checks that any bytes are a reply to each script, a refusal, or an unexpected reply. A correct
/// reply to a claim is read as it was written.
pub(crate) fn check(data: &[u8]) {
    let queue = QueueName::new("q").expect("a plain name");
    let reply = || Reply::from_bytes("verb", data);
    if let Some(claimed) = tried(reply().and_then(|reply| Broker::read_claim(&queue, reply))) {
        assert!(claimed.grants.iter().all(|grant| *grant.id.queue() == queue));
    }
    if let Some(renewed) = tried(reply().and_then(|reply| Broker::read_renew(&queue, reply))) {
        assert!(renewed.held.iter().all(|(id, _)| *id.queue() == queue));
    }
    if let Some(reaped) = tried(reply().and_then(|reply| Broker::read_reap(&queue, reply))) {
        assert!(reaped.lost.iter().all(|lost| *lost.id.queue() == queue));
    }
    tried(reply().and_then(Broker::read_inspect));
    tried(reply().and_then(Broker::read_report));
    let submitted = tried(reply().and_then(|reply| Broker::read_submit(&queue, TASKS, reply)));
    assert!(submitted.is_none_or(|submitted| submitted.receipts.len() == TASKS));
    check_claim(&queue, &mut Draw(data));
}

/// Returns the value that was read. An error names the script or the wrong value.
fn tried<T: Debug>(read: Result<T, BrokerError>) -> Option<T> {
    match read {
        Ok(value) => Some(value),
        Err(BrokerError::Refused(..)) => None,
        Err(BrokerError::UnexpectedReply(why)) => {
            assert!(!why.is_empty());
            None
        }
        Err(other) => panic!("{other:?}"),
    }
}

fn check_claim(queue: &QueueName, draw: &mut Draw<'_>) {
    let token = Token { seq: draw.number(), fence: draw.number() };
    let (now_ms, more, next_due) = (draw.number(), draw.is(), draw.option(Draw::byte));
    let count = usize::from(draw.byte() % 5);
    let ids: Vec<TaskId> = (0..count).map(|_| TaskId::new(queue.clone())).collect();
    let records: Vec<&[u8]> = ids.iter().map(|_| draw.bytes(8)).collect();
    let failures = draw.option(Draw::byte);

    let mut words: Vec<Vec<u8>> = vec![b"OK".to_vec(), token.to_string().into()];
    words.push(now_ms.to_string().into());
    words.push(u8::from(more).to_string().into());
    words.push(next_due.map_or(-1, i16::from).to_string().into());
    words.push(count.to_string().into());
    words.extend(ids.iter().map(|id| id.stored().into_bytes()));
    words.extend(records.iter().map(|record| record.to_vec()));
    words.extend(failures.iter().flat_map(|n| vec![format!("{n}:0:1").into_bytes(); count]));

    let reply = Reply::from_bytes("claim", &written(&words)).expect("a correct reply");
    let claimed = Broker::read_claim(queue, reply).expect("a correct reply");
    assert_eq!((claimed.token, claimed.now_ms, claimed.more), (token, now_ms, more));
    let wait = claimed.next_due.map(|wait| wait.as_millis());
    assert_eq!(wait, next_due.map(u128::from));
    assert_eq!(claimed.grants.len(), count);
    for ((grant, id), record) in claimed.grants.iter().zip(&ids).zip(records) {
        assert_eq!((&grant.id, grant.record.as_slice()), (id, record));
        assert_eq!(grant.tries, failures.map_or((0, 0, 0), |n| (u32::from(n), 0, 1)));
    }
}

/// Returns an array of byte strings in Redis' protocol.
fn written(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
