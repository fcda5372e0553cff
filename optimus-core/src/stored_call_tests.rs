//! Tests of calls that are stored as bytes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::*;
use crate::{
    BoxError, Context, Task, call::Call, call_submit::Submit as _, options::OnLost, rate::Rate,
};

#[derive(Serialize, Deserialize)]
struct Charge {
    order: u32,
}

impl Task for Charge {
    const NAME: &'static str = "charge";
    type Output = ();

    fn options() -> TaskOptions {
        TaskOptions::new().rate(Rate::per_second(5)).backoff(Backoff::Custom(|_, _| BACKOFF_MAX))
    }

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

const S: Duration = Duration::from_secs(1);

fn call() -> Call<Charge> {
    Charge { order: 7 }.call()
}

/// Stores a call and reads it after this time.
fn read_after(call: Call<Charge>, age: Duration) -> (Submission, Submission) {
    let before = call.into_submission().unwrap();
    let after = Submission::from_bytes(before.id.clone(), &before.to_bytes(), age).unwrap();
    (before, after)
}

#[test]
fn a_call_with_all_options_is_read_back_as_the_same_record() {
    let calls = [
        call(),
        call().biz_id("o-7").biz_window(3 * S).priority(5).timeout(S).max_retry(9).result_ttl(S),
        call().lane("a").lane_width(3).lane_rate(Rate::per_minute(2)).cost(4).header("x", "y"),
        call().expires_in(60 * S).on_lost(OnLost::Dead).max_losses(2),
        call().limit("stripe").after(TaskId::new("other".parse().unwrap())).outcome_ttl(S),
    ];
    for call in calls {
        let (before, after) = read_after(call, Duration::ZERO);
        assert_eq!(before.stored(), after.stored());
        assert_eq!(
            (&before.id, before.due, before.returns_nothing, &before.lane),
            (&after.id, after.due, after.returns_nothing, &after.lane)
        );
        assert!(after.may_exist, "a submit looks whether it is stored");
        assert_eq!(before.to_bytes(), after.to_bytes());
    }
}

#[test]
fn arguments_of_any_size_are_a_part_of_the_bytes() {
    let before = call().into_submission().unwrap().with_payload(vec![b'x'; 100_000]);
    let after =
        Submission::from_bytes(before.id.clone(), &before.to_bytes(), Duration::ZERO).unwrap();
    assert_eq!(before.payload, after.payload);
    assert_eq!(before.stored(), after.stored());
    assert!(after.blob().is_some());
}

#[test]
fn a_delay_counts_from_the_time_at_which_the_call_was_stored() {
    let in_10_s = || call().due(Due::In(10 * S));
    assert_eq!(read_after(in_10_s(), 4 * S).1.due, Due::In(6 * S));
    assert_eq!(read_after(in_10_s(), 40 * S).1.due, Due::In(Duration::ZERO));
    let at = DateTime::from_timestamp_millis(1_900_000_000_123).unwrap();
    assert_eq!(read_after(call().due(Due::At(at)), 4 * S).1.due, Due::At(at));
}

#[test]
fn bytes_of_newer_code_are_told_from_damaged_ones() {
    let read = |bytes: &[u8]| {
        let id = TaskId::new("default".parse().unwrap());
        Submission::from_bytes(id, bytes, Duration::ZERO).unwrap_err()
    };
    let newer = |bytes: &[u8], version| {
        assert_eq!(read(bytes), RecordError::Newer(version));
    };
    newer(b"{\"v\":2}\n{\"t\":\"charge\"}\n{}", 2);
    newer(b"{\"v\":3,\"in\":\"soon\"}\n{\"t\":\"charge\"}\n{}", 3);
    newer(b"{}\n{\"v\":99,\"t\":\"charge\"}\n{}", 99);
    for damaged in
        [&b""[..], b"\n", b"{}", b"{}\n", b"{}\n{}", b"7\n{\"t\":\"a\"}\n", b"\xff\n\xff"]
    {
        let problem = read(damaged);
        assert!(matches!(problem, RecordError::Damaged(_)), "{damaged:?}: {problem}");
    }
    let far = format!("{{\"at\":{}}}\n{{\"t\":\"charge\"}}\n{{}}", i64::MAX);
    assert!(matches!(read(far.as_bytes()), RecordError::Damaged(_)));
}
