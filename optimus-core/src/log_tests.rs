//! Subscribers that block, panic, or accept everything.

use optimus_testkit::{EachEvent, Hold, LogEvent};
use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// The events that a subscriber has taken.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<LogEvent>>>);

impl Notes {
    fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|event| event.message().to_owned()).collect()
    }

    /// How many events were dropped, by all events that report this, and how many others there are.
    /// A thread that starts late reports the first of the dropped events by themselves.
    fn dropped_and_logged(&self) -> (usize, usize) {
        let events = self.0.lock().unwrap();
        let reports = events.iter().filter_map(|event| event.get("dropped").parse::<usize>().ok());
        (reports.clone().sum(), events.len() - reports.count())
    }
}

/// Returns a log whose subscriber is the default of this thread only while the log is made. It
/// blocks until the hold is released, and panics where a text asks for it.
fn noting_after(hold: Hold) -> (Log, Notes, Dispatch) {
    let notes = Notes::default();
    let record = notes.clone();
    let subscriber = Dispatch::new(EachEvent::new(move |event| {
        hold.keep_thread();
        let panics = event.message().contains("panic");
        record.0.lock().unwrap().push(event);
        assert!(!panics, "asked to panic");
    }));
    let log = with_default(&subscriber, Log::here);
    (log, notes, subscriber)
}

fn noting() -> (Log, Notes, Dispatch) {
    let hold = Hold::new();
    hold.release();
    noting_after(hold)
}

#[tokio::test]
async fn events_reach_the_subscriber_of_the_thread_that_made_the_log_in_order() {
    let (log, notes, _subscriber) = noting();
    for number in 0..100 {
        crate::log_event!(log, WARN, "event {number}");
    }
    log.flush(PATIENCE).await;
    let expected: Vec<String> = (0..100).map(|number| format!("event {number}")).collect();
    assert_eq!(notes.texts(), expected);
}

#[tokio::test]
async fn a_subscriber_that_panics_loses_only_that_event() {
    let (log, notes, _subscriber) = noting();
    for text in ["first", "panic", "last"] {
        crate::log_event!(log, WARN, "{text}");
        log.flush(PATIENCE).await;
    }
    assert_eq!(notes.texts(), ["first", "panic", "last"]);
}

#[tokio::test]
async fn events_above_the_limit_are_dropped_and_counted_while_the_subscriber_blocks() {
    let hold = Hold::new();
    let (log, notes, _subscriber) = noting_after(hold.clone());
    // The thread may have taken one event, which then waits for the release.
    let all = WAITING_MAX + 11;
    for number in 0..all {
        crate::log_event!(log, WARN, "event {number}");
    }
    hold.release();
    log.flush(PATIENCE).await;
    let (dropped, logged) = notes.dropped_and_logged();
    assert!(dropped == 10 || dropped == 11, "{dropped}");
    assert_eq!(logged, all - dropped);
}

#[tokio::test]
async fn each_of_several_events_that_are_added_together_counts() {
    let hold = Hold::new();
    let (log, notes, _subscriber) = noting_after(hold.clone());
    let (together, all) = (128, 2 * WAITING_MAX);
    for _ in 0..all / together {
        log.add_all(vec!["event"; together], 0, |text| tracing::warn!("{text}"));
    }
    hold.release();
    log.flush(PATIENCE).await;
    let (dropped, logged) = notes.dropped_and_logged();
    // The thread may have taken the first of them already.
    assert!((all - WAITING_MAX - together..=all - WAITING_MAX).contains(&dropped), "{dropped}");
    assert_eq!(logged, all - dropped);
}

#[tokio::test]
async fn long_texts_above_the_limit_of_bytes_are_dropped_and_counted() {
    let hold = Hold::new();
    let (log, notes, _subscriber) = noting_after(hold.clone());
    let (together, bytes) = (16, 1024 * 1024);
    let kept = WAITING_BYTES_MAX / bytes;
    let entries = 2 * kept;
    for _ in 0..entries {
        log.add_all(vec!["event"; together], bytes, |text| tracing::warn!("{text}"));
    }
    hold.release();
    log.flush(PATIENCE).await;
    let (dropped, logged) = notes.dropped_and_logged();
    // The thread may have taken the first of them already.
    let taken = entries - dropped / together;
    assert!(taken == kept || taken == kept + 1, "{taken} of {kept}");
    assert_eq!(logged, taken * together);
    // What was dropped or logged takes no room any more.
    log.add_all(vec!["last"], WAITING_BYTES_MAX, |text| tracing::warn!("{text}"));
    log.flush(PATIENCE).await;
    assert_eq!(notes.texts().last().map(String::as_str), Some("last"));
}

#[tokio::test]
async fn a_flush_ends_in_time_while_the_subscriber_blocks() {
    let hold = Hold::new();
    let (log, notes, _subscriber) = noting_after(hold.clone());
    crate::log_event!(log, WARN, "stuck");
    let began_at = Instant::now();
    log.flush(Duration::from_millis(20)).await;
    assert!(began_at.elapsed() < PATIENCE);
    hold.release();
    log.flush(PATIENCE).await;
    assert_eq!(notes.texts(), ["stuck"]);
}
