//! The header of a task that has only a name, as most have. It is written and read without
//! [`Header`], which takes four times as long.

use crate::{
    id::validate_name,
    options::TaskOptions,
    record_json::Header,
    submission::{Fields, Submission},
};

/// Writes the header of a record.
pub(crate) fn write_header(submission: &Submission, bytes: &mut Vec<u8>) {
    let written = if has_only_name(submission) {
        bytes.extend_from_slice(br#"{"t":"#);
        let written = serde_json::to_writer(&mut *bytes, &submission.task);
        bytes.push(b'}');
        written
    } else {
        serde_json::to_writer(bytes, &Header::of(submission))
    };
    written.expect("a header of plain fields");
}

/// Returns the name of a task, if its header has nothing else.
pub(crate) fn only_name(header: &[u8]) -> Option<&str> {
    let name = header.strip_prefix(br#"{"t":""#)?.strip_suffix(br#""}"#)?;
    std::str::from_utf8(name).ok().filter(|name| validate_name(name).is_ok())
}

/// Returns whether the header of a submission has nothing but a name. All fields are named here, so
/// that a new one is not forgotten.
fn has_only_name(submission: &Submission) -> bool {
    let Fields {
        id: _,
        may_exist: _,
        task: _,
        returns_nothing: _,
        options,
        biz_id,
        lane,
        gather,
        after,
        follows_step: _,
        member,
        trace: _,
        limits,
        due: _,
        headers,
        payload: _,
    } = &**submission;
    let default = TaskOptions {
        // These are stored in other fields, or not at all.
        queue: options.queue,
        lane_width: options.lane_width,
        on_lane_failure: options.on_lane_failure,
        limit: options.limit,
        limits: options.limits,
        lane_limits: options.lane_limits,
        gather: options.gather,
        ..TaskOptions::DEFAULT
    };
    let has_no_field = biz_id.is_none()
        && lane.is_none()
        && gather.is_none()
        && after.is_none()
        && member.is_none()
        && limits.is_empty()
        && headers.is_empty()
        && submission.blob().is_none();
    has_no_field && *options == default
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        call_submit::Submit as _,
        context::Context,
        control_words::BoxError,
        options::OnLost,
        record::{RecordError, TaskRecord},
        retry::Backoff,
        task::Task,
    };

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Charge {}

    impl Task for Charge {
        const NAME: &'static str = "charge";
        type Output = ();

        async fn run(self, _: Context) -> Result<(), BoxError> {
            Ok(())
        }
    }

    fn assert_is_written_as_json(submission: &Submission) {
        let (mut written, mut expected) = (Vec::new(), Vec::new());
        write_header(submission, &mut written);
        serde_json::to_writer(&mut expected, &Header::of(submission)).unwrap();
        assert_eq!(String::from_utf8(written), String::from_utf8(expected));
    }

    #[test]
    fn a_header_is_written_like_any_other_whatever_the_options() {
        const S: Duration = Duration::from_secs(1);
        let plain = TaskOptions::new();
        let changed = [
            plain,
            plain.queue("other").lane_width(2).limit("x").max_working(1).gather(S, 9),
            plain.priority(1),
            plain.timeout(S),
            plain.max_retry(0),
            plain.backoff(Backoff::Fixed { wait: S, jitter: 0.0 }),
            plain.biz_window(S),
            plain.result_ttl(S),
            plain.expires_in(S),
            plain.on_lost(OnLost::Dead),
            plain.max_losses(1),
            plain.outcome_ttl(S),
            plain.cost(2),
        ];
        for options in changed {
            let mut submission = Charge {}.call().into_submission().unwrap();
            submission.options = options;
            assert_is_written_as_json(&submission);
            submission.task = "a \"quoted\" name".into();
            assert_is_written_as_json(&submission);
        }
    }

    #[test]
    fn a_header_is_written_like_any_other_whatever_the_call_says() {
        let call = || Charge {}.call();
        let calls = [
            call().biz_id(7),
            call().lane("user-7"),
            call().header("tenant", "acme"),
            call().after(&call().into_submission().unwrap().id),
        ];
        for call in calls {
            assert_is_written_as_json(&call.into_submission().unwrap());
        }
        let large = call().into_submission().unwrap().with_payload(vec![b' '; 64 * 1024]);
        assert_is_written_as_json(&large);
    }

    #[test]
    fn a_header_with_only_a_name_is_read_like_any_other() {
        let read = |header: &str| TaskRecord::decode(format!("{header}\n{{}}").into());
        for name in ["charge", "a", "A.b_c-9"] {
            let with_version = read(&format!(r#"{{"t":"{name}","v":1}}"#)).unwrap();
            let alone = read(&format!(r#"{{"t":"{name}"}}"#)).unwrap();
            assert_eq!(format!("{alone:?}"), format!("{with_version:?}"));
            assert_eq!(alone.task, name);
        }
        let names = [(r"a\u0062", "ab"), ("a b", "a b"), ("", ""), (r#"a","z":"t"#, "a")];
        for (written, name) in names {
            assert_eq!(read(&format!(r#"{{"t":"{written}"}}"#)).unwrap().task, name);
        }
        for damaged in [r#"{"t":"a""}"#, r#"{"t":"a\"}"#, r#"{"t":""#, r#"{"t":"}"#] {
            assert!(matches!(read(damaged), Err(RecordError::Damaged(_))), "{damaged}");
        }
    }
}
