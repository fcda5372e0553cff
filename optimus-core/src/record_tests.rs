//! The record format: written records are read back, and other bytes are refused.

use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;
use crate::{
    after::{After, Prerequisite, PrerequisiteFailure},
    broker::SizeLimit,
    gate::Gate,
    gather::Gather,
    group::Member,
    headers::Headers,
    id::{QueueName, TaskId},
    lane::LaneFailure,
    limit::Limit,
    options::{Due, TaskOptions},
    rate::Rate,
    record_json::{Header, millis},
    submission::{BLOB_BYTES_MIN, Fields, Submission},
};

#[expect(clippy::large_types_passed_by_value, reason = "a test may copy it")]
fn submission(options: TaskOptions, biz_id: Option<String>, payload: Vec<u8>) -> Submission {
    Submission::of(Fields {
        may_exist: false,
        id: TaskId::new(QueueName::new("q").unwrap()),
        task: "charge".into(),
        returns_nothing: false,
        options,
        biz_id,
        lane: None,
        gather: None,
        after: None,
        follows_step: false,
        member: None,
        trace: None,
        limits: Vec::new(),
        due: Due::Now,
        headers: Headers::new(),
        payload,
    })
}

fn stored(submission: &Submission) -> Vec<u8> {
    submission.stored()
}

#[test]
fn a_record_of_defaults_has_only_its_name() {
    let plain = submission(TaskOptions::new(), None, b"{}".to_vec());
    assert_eq!(stored(&plain), b"{\"t\":\"charge\"}\n{}");
}

#[test]
fn members_and_tasks_that_take_a_result_have_version_5_and_are_read_back() {
    let plain = || submission(TaskOptions::new(), None, b"[".to_vec());
    let group = TaskId::new(QueueName::new("home").unwrap());
    for on_failure in
        [PrerequisiteFailure::Wait, PrerequisiteFailure::Cancel, PrerequisiteFailure::Run]
    {
        let member = Member { group: group.clone(), index: 7, on_failure };
        let stored = plain().member_of(member.clone()).stored();
        assert!(stored.starts_with(b"{\"v\":5,"), "{stored:?}");
        assert_eq!(TaskRecord::decode(stored).unwrap().member, Some(member));
    }
    let after = After::new([Prerequisite::Task(group)]).taking("]");
    let stored = plain().waiting_for(after.clone()).stored();
    assert!(stored.starts_with(b"{\"v\":5,"), "{stored:?}");
    assert_eq!(TaskRecord::decode(stored).unwrap().after, Some(after));
}

#[test]
fn only_a_record_with_a_lane_has_version_2_and_the_lane_is_read_back() {
    let in_lane = |lane| submission(TaskOptions::new(), None, b"{}".to_vec()).in_lane(lane);
    let lane = Lane::new("user-\"7\"");
    let header = "{\"v\":2,\"t\":\"charge\",\"n\":\"user-\\\"7\\\"\"}\n{}";
    assert_eq!(stored(&in_lane(lane.clone())), header.as_bytes());
    let wide = NonZeroU16::MAX;
    for lane in [lane, Lane { key: "a".into(), width: wide, on_failure: LaneFailure::Block }] {
        let read = TaskRecord::decode(stored(&in_lane(lane.clone()))).unwrap();
        assert_eq!(read.lane, Some(lane));
    }
    assert!(in_lane(Lane::new("a\tb")).check(up_to(2), 0).unwrap_err().is_invalid());
    let plain = TaskRecord::decode(b"{\"t\":\"charge\"}\n{}".to_vec()).unwrap();
    assert_eq!(plain.lane, None);
}

#[test]
fn a_record_of_a_task_that_runs_with_others_has_version_6_and_is_read_back() {
    let plain = || submission(TaskOptions::new(), None, b"{}".to_vec());
    for by in ["", "user-\"7\": a"] {
        let gather = Gather { by: by.into(), wait: Duration::from_secs(10), max: 500 };
        let stored = stored(&plain().gathered(gather.clone()).in_lane(Lane::new("a")));
        assert!(stored.starts_with(b"{\"v\":6,"), "{stored:?}");
        assert_eq!(TaskRecord::decode(stored).unwrap().gather, Some(gather));
    }
    let damaged = TaskRecord::decode(b"{\"v\":6,\"t\":\"a\",\"ga\":\"10\"}\n".to_vec());
    assert!(matches!(damaged, Err(RecordError::Damaged(_))));
}

#[test]
fn a_record_of_a_task_that_waits_or_is_waited_for_has_version_4_and_is_read_back() {
    let queue = QueueName::new("q").unwrap();
    let key = Prerequisite::Key { queue, task: "reserve".into(), biz_id: "o \"17\"".into() };
    let waiting = |after| submission(TaskOptions::new(), None, b"{}".to_vec()).waiting_for(after);
    let stored_wait = stored(&waiting(After::new([key.clone()])));
    let header = "{\"v\":4,\"t\":\"charge\",\"a\":[\"q/reserve:o \\\"17\\\"\"]}\n{}";
    assert_eq!(String::from_utf8(stored_wait).unwrap(), header);
    let id = Prerequisite::Task(TaskId::new(QueueName::new("other").unwrap()));
    let (hour, both) = (Duration::from_secs(3600), [key, id]);
    for on_failure in
        [PrerequisiteFailure::Wait, PrerequisiteFailure::Cancel, PrerequisiteFailure::Run]
    {
        let after = After { on_failure, give_up_after: Some(hour), ..After::new(both.clone()) };
        let read = TaskRecord::decode(stored(&waiting(after.clone()))).unwrap();
        assert_eq!(read.after, Some(after));
    }
    let remembered = submission(TaskOptions::new().outcome_ttl(hour), None, b"{}".to_vec());
    let header = "{\"v\":4,\"t\":\"charge\",\"rm\":3600000}\n{}";
    assert_eq!(String::from_utf8(stored(&remembered)).unwrap(), header);
    assert_eq!(TaskRecord::decode(stored(&remembered)).unwrap().outcome_ttl, Some(hour));
    let damaged = TaskRecord::decode(b"{\"v\":4,\"t\":\"a\",\"a\":[\"no queue\"]}\n".to_vec());
    assert!(matches!(damaged, Err(RecordError::Damaged(_))));
}

#[test]
fn the_limits_of_a_task_are_read_back_and_its_record_has_version_3() {
    let limits = vec![
        TaskLimit {
            gate: Gate::Lane("a:b".into()),
            limit: Limit::new().rate(Rate::per_second(10)).burst(3),
        },
        TaskLimit { gate: Gate::Named("stripe".into()), limit: Limit::new().max_working(4) },
        TaskLimit { gate: Gate::Task("charge".into()), limit: Limit::new() },
    ];
    let options = TaskOptions::new().cost(5);
    let limited = submission(options, None, b"{}".to_vec()).limited_by(limits.clone());
    let header = "{\"v\":3,\"t\":\"charge\",\"g\":[\"100000:3:0:lane:a:b\",\"0:0:4:limit:stripe\",\
                  \"0:0:0:task:charge\"],\"gc\":5}\n{}";
    assert_eq!(String::from_utf8(stored(&limited)).unwrap(), header);
    let read = TaskRecord::decode(stored(&limited)).unwrap();
    assert_eq!((read.limits, read.cost), (limits, 5));
    for damaged in ["1:1:task:a", "x:1:0:task:a", "1:1:0:a", "1:1:0:other:a"] {
        let record = format!("{{\"v\":3,\"t\":\"charge\",\"g\":[\"{damaged}\"]}}\n{{}}");
        let problem = TaskRecord::decode(record.into_bytes()).unwrap_err();
        assert!(problem.to_string().contains(damaged), "{problem}");
    }
    let wrong = TaskLimit { gate: Gate::Lane(String::new()), limit: Limit::new() };
    let wrong = submission(options, None, Vec::new()).limited_by(vec![wrong]);
    assert!(wrong.check(up_to(2), 0).unwrap_err().is_invalid());
}

#[test]
fn headers_are_read_back_and_count_as_bytes() {
    let mut tagged = submission(TaskOptions::new(), None, b"{}".to_vec());
    tagged.headers.insert("tenant".into(), "a\n\"b\" ü\0".into());
    tagged.headers.insert("trace".into(), String::new());
    assert_eq!(TaskRecord::decode(stored(&tagged)).unwrap().headers, tagged.headers);
    assert_eq!(tagged.bytes(), "{}tenanttrace".len() + 9);
    tagged.check(up_to(2), 0).unwrap();
    tagged.headers.insert("a b".into(), String::new());
    assert!(tagged.check(up_to(2), 0).unwrap_err().is_invalid());
}

#[test]
fn a_stamp_before_the_header_is_the_time_of_acceptance() {
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
fn a_record_of_a_newer_version_is_not_reported_as_damaged() {
    let version = RECORD_VERSION + 1;
    let newer = TaskRecord::decode(format!("mbq1x2y3{{\"v\":{version},\"new\":[1]}}\n{{}}").into());
    assert_eq!(newer.unwrap_err(), RecordError::Newer(version));
    let damaged = TaskRecord::decode(b"mbq1x2y3{\"v\":1}\n{}".to_vec());
    assert!(matches!(damaged, Err(RecordError::Damaged(_))));
}

#[test]
fn a_payload_above_16_kib_is_stored_apart_from_the_record() {
    let big = submission(TaskOptions::new(), None, vec![b'x'; BLOB_BYTES_MIN + 1]);
    let read = TaskRecord::decode(stored(&big)).unwrap();
    assert!(read.has_blob && read.payload.is_empty());
}

/// Returns every form of back-off, in whole milliseconds, as records store them.
fn backoffs() -> impl Strategy<Value = Backoff> {
    let ms = || (1_u64..1_000_000).prop_map(Duration::from_millis);
    let jitter = || 0.0..=1.0_f64;
    prop_oneof![
        Just(Backoff::Sidekiq),
        (ms(), ms(), jitter()).prop_map(|(base, cap, jitter)| Backoff::Exponential {
            base,
            cap,
            jitter
        }),
        (ms(), ms(), jitter()).prop_map(|(base, cap, jitter)| Backoff::Linear {
            base,
            cap,
            jitter
        }),
        (ms(), jitter()).prop_map(|(wait, jitter)| Backoff::Fixed { wait, jitter }),
    ]
}

proptest! {
    #[test]
    fn every_backoff_is_read_back(backoff in backoffs()) {
        let written = submission(TaskOptions::new().backoff(backoff), None, Vec::new());
        prop_assert_eq!(TaskRecord::decode(stored(&written)).unwrap().backoff, Some(backoff));
    }

    #[test]
    fn every_duration_is_read_back(ms in 1_u64..1_000_000_000, max_losses in 1_u32..9) {
        let ms = Duration::from_millis(ms);
        let options = TaskOptions::new()
            .biz_window(ms)
            .result_ttl(ms + ms)
            .expires_in(ms + ms + ms)
            .max_losses(max_losses);
        let read = TaskRecord::decode(stored(&submission(options, None, Vec::new()))).unwrap();
        prop_assert_eq!(read.biz_window, Some(ms));
        prop_assert_eq!(read.result_ttl, ms + ms);
        prop_assert_eq!(read.expires_in, Some(ms + ms + ms));
        prop_assert_eq!(read.max_losses, max_losses);
    }
}

#[test]
fn a_custom_backoff_is_stored_as_a_mark() {
    let custom = Backoff::Custom(|_, _| Duration::ZERO);
    let written = submission(TaskOptions::new().backoff(custom), None, Vec::new());
    assert_eq!(TaskRecord::decode(stored(&written)).unwrap().backoff, None);
    let unknown = TaskRecord::decode(b"{\"t\":\"a\",\"b\":\"fibonacci:1\"}\n".to_vec());
    assert!(unknown.unwrap_err().to_string().contains("fibonacci"));
}

#[test]
fn a_duration_rounds_up_to_a_millisecond_and_stays_within_the_numbers_of_lua() {
    assert_eq!(millis(Duration::ZERO), 0);
    assert_eq!(millis(Duration::from_nanos(1)), 1);
    assert_eq!(millis(Duration::from_nanos(1_000_001)), 2);
    assert_eq!(millis(Duration::MAX), 9_007_199_254_740_991);
}

#[test]
fn the_first_version_is_not_stored() {
    let of = |v: u32| {
        let bytes = format!("{{\"v\":{v},\"t\":\"a\"}}\n").into_bytes();
        TaskRecord::decode(bytes).map(|record| record.task)
    };
    assert_eq!(of(1), Ok("a".into()));
    assert_eq!(of(RECORD_VERSION), Ok("a".into()));
    assert_eq!(of(RECORD_VERSION + 1), Err(RecordError::Newer(RECORD_VERSION + 1)));
    // Records that any worker can run have no version field; others have one.
    let plain = submission(TaskOptions::new(), None, Vec::new());
    let mut later = Header::of(&plain);
    later.v = 2;
    assert_eq!(serde_json::to_string(&later).unwrap(), "{\"v\":2,\"t\":\"charge\"}");
}

fn up_to(bytes: usize) -> SizeLimit {
    SizeLimit::new(bytes, "the limit")
}

#[test]
fn payloads_and_biz_ids_are_accepted_up_to_their_limits() {
    let of = |biz_id: usize, payload: usize| {
        let biz_id = Some("x".repeat(biz_id));
        submission(TaskOptions::new(), biz_id, vec![b'x'; payload]).check(up_to(10), 0)
    };
    of(1, 10).unwrap();
    of(512, 0).unwrap();
    assert!(of(1, 11).unwrap_err().is_too_large());
    for biz_id in [0, 513] {
        assert!(of(biz_id, 0).unwrap_err().is_invalid());
    }
    let mut unnamed = submission(TaskOptions::new(), None, Vec::new());
    unnamed.check(up_to(0), 0).unwrap();
    unnamed.task = "a b".into();
    assert!(unnamed.check(up_to(0), 0).unwrap_err().is_invalid());
}

#[test]
fn a_given_id_with_a_time_more_than_a_day_ahead_is_refused() {
    let made = |id: &str, may_exist| {
        let id: TaskId = format!("q/{id}").parse().unwrap();
        let mut submission = submission(TaskOptions::new(), None, Vec::new()).with_id(id.clone());
        submission.may_exist = may_exist;
        (submission, id.made_ms())
    };
    let (task, at) = made("01890a5d-ac96-774b-bcce-b302099a8057", true);
    let day = 24 * 60 * 60 * 1000;
    task.check(up_to(0), at - day).unwrap();
    let problem = task.check(up_to(0), at - day - 1).unwrap_err();
    assert!(problem.is_invalid() && problem.to_string().contains("ahead"), "{problem}");
    assert!(task.id_has_submit_time(at - 1_000) && task.id_has_submit_time(at + 1_000));
    assert!(!task.id_has_submit_time(at - 1_001) && !task.id_has_submit_time(at + 1_001));

    let (own, at) = made("01890a5d-ac96-774b-bcce-b302099a8057", false);
    own.check(up_to(0), at - 2 * day).unwrap();
    assert!(own.id_has_submit_time(0));
    let (foreign, _) = made("f47ac10b-58cc-4372-a567-0e02b2c3d479", true);
    foreign.check(up_to(0), at).unwrap();
    assert!(!foreign.id_has_submit_time(at));
}

#[test]
fn a_payload_of_16_kib_stays_in_its_record() {
    assert_eq!(BLOB_BYTES_MIN, 16_384);
    let full = submission(TaskOptions::new(), None, vec![b'x'; BLOB_BYTES_MIN]);
    let read = TaskRecord::decode(stored(&full)).unwrap();
    assert!(!read.has_blob && read.payload.len() == BLOB_BYTES_MIN);
}

#[test]
fn a_submission_takes_an_id_that_was_made_before() {
    let id = TaskId::new(QueueName::new("q").unwrap());
    assert_eq!(submission(TaskOptions::new(), None, vec![]).with_id(id.clone()).id(), &id);
}

#[test]
fn arguments_are_whole_json_also_while_a_result_is_missing() {
    let read = |payload: &str, suffix: Option<&str>| {
        let mut task = submission(TaskOptions::new(), None, payload.as_bytes().to_vec());
        let first = Prerequisite::Task(TaskId::new(QueueName::new("q").unwrap()));
        let after = TaskOptions::new().after.wait(vec![first]).unwrap();
        task.after = Some(suffix.map_or(after.clone(), |suffix| after.taking(suffix)));
        let record = TaskRecord::decode(stored(&task)).unwrap();
        let arguments = String::from_utf8(record.arguments().into_owned()).unwrap();
        (arguments, record.waits_for_result())
    };
    let one = r#"{"order":7,"ticket":"(the result of the step before)"}"#;
    assert_eq!(read(r#"{"order":7,"ticket":"#, Some("}")), (one.to_owned(), true));
    let all = r#"{"order":7,"tickets":"(the results of the group before)"}"#;
    assert_eq!(read(r#"{"order":7,"tickets":{"$all":"#, Some("}}")), (all.to_owned(), true));
    for suffix in [None, Some("}")] {
        let whole = r#"{"order":7,"ticket":"a:"}"#;
        assert_eq!(read(whole, suffix), (whole.to_owned(), false));
    }
}
