//! Prints a stored task for debugging, with its arguments as text, not as a list of numbers.

use std::fmt;

use crate::record::TaskRecord;

/// A longer payload is not printed in full.
const BYTES_MAX: usize = 200;

/// Prints short text as it is, and the number of bytes otherwise.
struct Shown<'a>(&'a [u8]);

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match std::str::from_utf8(self.0) {
            Ok(text) if text.len() <= BYTES_MAX => f.write_str(text),
            _ => write!(f, "{} bytes", self.0.len()),
        }
    }
}

impl fmt::Debug for TaskRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            task,
            accepted_ms,
            timeout,
            max_retry,
            backoff,
            biz_id,
            biz_window,
            lane,
            gather,
            after,
            member,
            tick,
            outcome_ttl,
            limits,
            cost,
            result_ttl,
            expires_in,
            on_lost,
            max_losses,
            priority,
            headers,
            payload,
            has_blob,
        } = self;
        f.debug_struct("TaskRecord")
            .field("task", task)
            .field("accepted_ms", accepted_ms)
            .field("timeout", timeout)
            .field("max_retry", max_retry)
            .field("backoff", backoff)
            .field("biz_id", biz_id)
            .field("biz_window", biz_window)
            .field("lane", lane)
            .field("gather", gather)
            .field("after", after)
            .field("member", member)
            .field("tick", tick)
            .field("outcome_ttl", outcome_ttl)
            .field("limits", limits)
            .field("cost", cost)
            .field("result_ttl", result_ttl)
            .field("expires_in", expires_in)
            .field("on_lost", on_lost)
            .field("max_losses", max_losses)
            .field("priority", priority)
            .field("headers", headers)
            .field("payload", &Shown(payload))
            .field("has_blob", has_blob)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(payload: &[u8]) -> String {
        let stored = [br#"{"t":"mail"}"#, &b"\n"[..], payload].concat();
        format!("{:?}", TaskRecord::decode(stored).unwrap())
    }

    #[test]
    fn arguments_are_shown_as_text_or_by_their_length() {
        let short = shown(br#"{"to":"eva"}"#);
        assert!(short.contains(r#"task: "mail""#), "{short}");
        assert!(short.contains(r#"payload: {"to":"eva"},"#), "{short}");
        assert!(shown(&[b'7'; 201]).contains("payload: 201 bytes,"));
        assert!(shown(&[0xff, 0xfe]).contains("payload: 2 bytes,"));
    }
}
