//! Tests stored records. A written record is read back, and other bytes are refused.

use std::time::Duration;

use optimus_core::{
    BACKOFF_MAX, Backoff, BoxError, Call, Context, Lane, LaneFailure, OnLost, RECORD_VERSION,
    RecordError, Submit as _, Task, TaskRecord,
};
use serde::{Deserialize, Serialize};

use crate::draw::Draw;

/// A task with one text argument.
#[derive(Serialize, Deserialize)]
struct Echo(String);

impl Task for Echo {
    const NAME: &'static str = "echo";
    type Output = String;

    async fn run(self, _: Context) -> Result<String, BoxError> {
        Ok(self.0)
    }
}

/// Checks that any bytes are a record with its payload unchanged, or are refused with their version
/// or the error.
pub(crate) fn check(data: &[u8]) {
    match TaskRecord::decode(data.to_vec()) {
        Ok(record) => {
            assert!(data.ends_with(&record.payload));
            let header = data.len() - record.payload.len();
            assert_eq!(data[header - 1], b'\n');
            assert_eq!(record.accepted_ms.is_none(), data[0] == b'{');
            if let Some(backoff) = record.backoff {
                let wait = backoff.wait(u32::MAX, &std::fmt::Error, 0.5);
                assert!(wait <= BACKOFF_MAX);
            }
        }
        Err(RecordError::Newer(version)) => assert!(version > RECORD_VERSION),
        Err(problem) => assert!(problem.to_string().len() > "the record is damaged: ".len()),
    }
}

/// Checks that any call is refused with the name of the wrong option, or is stored and read back
/// unchanged.
pub(crate) fn check_submission(data: &[u8]) {
    let mut draw = Draw(data);
    let (call, options) = call(&mut draw);
    let submission = match call.into_submission() {
        Ok(submission) => submission,
        Err(problem) => {
            assert!(problem.is_invalid());
            assert!(problem.to_string().contains("\"echo\""), "{problem}");
            return;
        }
    };
    let read = TaskRecord::decode(submission.stored()).expect("this code wrote the record");
    assert_eq!(read.task, "echo");
    assert_eq!((read.priority, read.timeout), (options.priority, options.timeout));
    assert_eq!((read.max_retry, read.biz_id), (options.max_retry, options.biz_id));
    assert_eq!((read.biz_window, read.expires_in), (options.biz_window, options.expires_in));
    assert!(read.headers.iter().eq(options.header.iter().map(|(name, value)| (name, value))));
    assert_eq!((read.result_ttl, read.on_lost), (options.result_ttl, options.on_lost));
    let lane = read.lane.map(|Lane { key, width, on_failure }| {
        (key, width.get(), on_failure == LaneFailure::Block)
    });
    assert_eq!(lane, options.lane);
    let backoff = read.backoff.expect("no back-off here is a function");
    for (n, random) in [(1, 0.0), (2, 0.9), (u32::MAX, 0.5)] {
        let wait = |backoff: Backoff| backoff.wait(n, &std::fmt::Error, random);
        assert_eq!(wait(backoff), wait(options.backoff));
    }
    let argument = serde_json::to_vec(&options.argument).expect("a text");
    assert_eq!(read.payload, if read.has_blob { Vec::new() } else { argument });
}

/// The drawn options of a call.
struct Said {
    argument: String,
    priority: i8,
    timeout: Duration,
    max_retry: u32,
    backoff: Backoff,
    biz_id: Option<String>,
    biz_window: Option<Duration>,
    result_ttl: Duration,
    expires_in: Option<Duration>,
    on_lost: OnLost,
    header: Option<(String, String)>,
    lane: Option<(String, u16, bool)>,
}

fn call(draw: &mut Draw<'_>) -> (Call<Echo>, Said) {
    let said = Said {
        priority: i8::from_le_bytes([draw.byte()]),
        timeout: draw.duration(),
        max_retry: u32::try_from(draw.number()).unwrap_or(u32::MAX),
        backoff: backoff(draw),
        biz_id: draw.option(Draw::text),
        biz_window: draw.option(Draw::duration),
        result_ttl: draw.duration(),
        expires_in: draw.option(Draw::duration),
        on_lost: if draw.is() { OnLost::Dead } else { OnLost::Retry },
        header: draw.option(|draw| (draw.text(), draw.text())),
        lane: draw.option(|draw| (draw.text(), u16::from(draw.byte()), draw.is())),
        argument: String::from_utf8_lossy(draw.0).into_owned(),
    };
    let mut call = Echo(said.argument.clone()).call().priority(said.priority);
    call = call.timeout(said.timeout).max_retry(said.max_retry).backoff(said.backoff);
    call = call.result_ttl(said.result_ttl).on_lost(said.on_lost);
    if let Some((name, value)) = &said.header {
        call = call.header(name, value);
    }
    if let Some((lane, width, blocks)) = &said.lane {
        let on_failure = if *blocks { LaneFailure::Block } else { LaneFailure::Skip };
        call = call.lane(lane).lane_width(*width).on_lane_failure(on_failure);
    }
    if let Some(biz_id) = &said.biz_id {
        call = call.biz_id(biz_id);
    }
    if let Some(window) = said.biz_window {
        call = call.biz_window(window);
    }
    if let Some(expires_in) = said.expires_in {
        call = call.expires_in(expires_in);
    }
    (call, said)
}

fn backoff(draw: &mut Draw<'_>) -> Backoff {
    let (form, base, cap) = (draw.byte() % 4, draw.duration(), draw.duration());
    let jitter = draw.share();
    match form {
        0 => Backoff::Sidekiq,
        1 => Backoff::Exponential { base, cap, jitter },
        2 => Backoff::Linear { base, cap, jitter },
        _ => Backoff::Fixed { wait: base, jitter },
    }
}
