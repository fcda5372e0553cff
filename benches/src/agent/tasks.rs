//! The tasks. Their handlers only count executions.

use optimus::Context;

use super::tally::Tally;

/// The plain task.
#[optimus::task(queue = "bench")]
pub(super) async fn work(number: u64, text: String) {
    drop(text);
    Tally::get().count(number);
}

/// A task with a result that is kept.
#[optimus::task(queue = "bench")]
pub(super) async fn answer(number: u64, text: String) -> Result<String, std::io::Error> {
    Tally::get().count(number);
    Ok(text)
}

/// A task that fails in its first attempt.
#[optimus::task(queue = "bench", backoff = "fixed(wait = 1ms, jitter = 0)")]
pub(super) async fn fail_once(
    number: u64,
    text: String,
    ctx: Context,
) -> Result<(), std::io::Error> {
    drop(text);
    if ctx.attempt() == 1 {
        return Err(std::io::Error::other("the first attempt fails"));
    }
    Tally::get().count(number);
    Ok(())
}

/// A task that reports how long after `instant_us` it started. This time is in µs since the Unix
/// epoch.
#[optimus::task(queue = "bench")]
pub(super) async fn stamped(number: u64, text: String, instant_us: u64) {
    Tally::get().count_since(number, instant_us);
    drop(text);
}

/// A task of a schedule. It reports how long after its instant it started.
#[optimus::task(queue = "bench")]
pub(super) async fn ticked(number: u64, ctx: Context) {
    let instant = ctx.tick().map_or(0, |tick| tick.nominal().timestamp_micros());
    Tally::get().count_since(number, u64::try_from(instant).unwrap_or_default());
}

/// Arguments with this size as JSON, including their number.
pub(super) fn text(number: u64, payload: usize) -> String {
    let digits = number.checked_ilog10().map_or(1, |log| log as usize + 1);
    let others = r#"{"number":,"text":""}"#.len() + digits;
    "x".repeat(payload.saturating_sub(others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::protocol::QUEUE;
    use optimus::Submit as _;

    #[test]
    fn arguments_have_the_requested_size() {
        for number in [0, 9, 10, 123_456] {
            let arguments = serde_json::json!({ "number": number, "text": text(number, 200) });
            assert_eq!(arguments.to_string().len(), 200);
        }
        let submission = work(1, text(1, 200)).into_submission().unwrap();
        assert_eq!(submission.id().queue().as_str(), QUEUE);
    }
}
