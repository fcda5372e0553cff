//! The record format: what is written is read back, and what is not ours is refused.

use proptest::prelude::*;

use super::*;
use crate::id::QueueName;

fn submission(options: TaskOptions, biz_id: Option<String>, payload: Vec<u8>) -> Submission {
    Submission {
        id: TaskId::new(QueueName::new("q").unwrap()),
        task: "charge".into(),
        options,
        biz_id,
        due: Due::Now,
        payload,
    }
}

fn stored(submission: &Submission) -> Vec<u8> {
    let mut bytes = Vec::new();
    submission.encode(&mut bytes);
    bytes
}

#[test]
fn a_record_of_defaults_carries_only_its_name() {
    let plain = submission(TaskOptions::new(), None, b"{}".to_vec());
    assert_eq!(stored(&plain), b"{\"t\":\"charge\"}\n{}");
}

#[test]
fn a_stamp_before_the_header_says_when_it_was_accepted() {
    let plain = submission(TaskOptions::new(), None, b"{}".to_vec());
    let stamped = [b"0000002s".as_slice(), &stored(&plain)].concat();
    assert_eq!(TaskRecord::decode(stamped).unwrap().accepted_ms, Some(100));
    assert_eq!(TaskRecord::decode(stored(&plain)).unwrap().accepted_ms, None);
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        timeout in 1_u64..1_000_000, max_retry in any::<u32>(), priority in -100_i8..=100,
        biz_id in proptest::option::of(".{0,20}"), payload in any::<Vec<u8>>(),
        (jitter, dead) in (0.0..=1.0_f64, any::<bool>()),
    ) {
        let ms = Duration::from_millis(timeout);
        let options = TaskOptions::new()
            .timeout(ms)
            .max_retry(max_retry)
            .priority(priority)
            .backoff(Backoff::Exponential { base: ms, cap: ms * 2, jitter })
            .on_lost(if dead { OnLost::Dead } else { OnLost::Retry });
        let written = submission(options, biz_id.clone(), payload.clone());
        let read = TaskRecord::decode(stored(&written)).unwrap();
        prop_assert_eq!(read.timeout, ms);
        prop_assert_eq!(read.max_retry, max_retry);
        prop_assert_eq!(read.priority, priority);
        prop_assert_eq!(read.backoff, Some(options.backoff));
        prop_assert_eq!(read.on_lost, options.on_lost);
        prop_assert_eq!(read.biz_id, biz_id);
        prop_assert_eq!(read.payload, payload);
    }

    #[test]
    fn hostile_bytes_are_refused_without_a_panic(bytes in any::<Vec<u8>>()) {
        drop(TaskRecord::decode([b"mbq1x2y3".as_slice(), &bytes].concat()));
        drop(TaskRecord::decode([b"{".as_slice(), &bytes].concat()));
        drop(TaskRecord::decode(bytes));
    }
}

#[test]
fn a_record_of_a_newer_version_is_told_from_a_damaged_one() {
    let newer = TaskRecord::decode(b"mbq1x2y3{\"v\":2,\"new\":[1]}\n{}".to_vec());
    assert_eq!(newer.unwrap_err(), RecordError::Newer(2));
    let damaged = TaskRecord::decode(b"mbq1x2y3{\"v\":1}\n{}".to_vec());
    assert!(matches!(damaged, Err(RecordError::Damaged(_))));
}

#[test]
fn a_payload_above_16_kib_is_kept_beside_the_record() {
    let big = submission(TaskOptions::new(), None, vec![b'x'; BLOB_BYTES_MIN + 1]);
    let read = TaskRecord::decode(stored(&big)).unwrap();
    assert!(read.has_blob && read.payload.is_empty());
}
