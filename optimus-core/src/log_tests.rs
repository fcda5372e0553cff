//! Subscribers that block, panic, or accept everything.

use std::{fmt, sync::Condvar};

use tokio::time::Instant;
use tracing::{
    Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// Blocks while its gate is shut, panics where a text asks for it, and notes the rest.
#[derive(Clone, Default)]
struct Notes(Arc<(Mutex<Noted>, Condvar)>);

#[derive(Default)]
struct Noted {
    is_shut: bool,
    texts: Vec<String>,
    dropped: Option<u64>,
}

impl Notes {
    fn shut(&self) {
        self.0.0.lock().unwrap().is_shut = true;
    }

    fn open(&self) {
        self.0.0.lock().unwrap().is_shut = false;
        self.0.1.notify_all();
    }

    fn texts(&self) -> Vec<String> {
        self.0.0.lock().unwrap().texts.clone()
    }
}

impl Subscriber for Notes {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn event(&self, event: &tracing::Event<'_>) {
        let mut noted = self.0.0.lock().unwrap();
        while noted.is_shut {
            noted = self.0.1.wait(noted).unwrap();
        }
        event.record(&mut Read(&mut noted));
        let panics = noted.texts.last().is_some_and(|text| text.contains("panic"));
        drop(noted);
        assert!(!panics, "asked to panic");
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Read<'a>(&'a mut Noted);

impl Visit for Read<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "dropped" {
            self.0.dropped = Some(value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0.texts.push(format!("{value:?}"));
        }
    }
}

/// A log whose subscriber is the default of this thread only while the log is made.
fn noting() -> (Log, Notes, Dispatch) {
    let notes = Notes::default();
    let subscriber = Dispatch::new(notes.clone());
    let log = with_default(&subscriber, Log::here);
    (log, notes, subscriber)
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
    let (log, notes, _subscriber) = noting();
    notes.shut();
    // The thread may have taken one event, which then waits at the gate.
    let all = WAITING_MAX + 11;
    for number in 0..all {
        crate::log_event!(log, WARN, "event {number}");
    }
    notes.open();
    log.flush(PATIENCE).await;
    let dropped =
        usize::try_from(notes.0.0.lock().unwrap().dropped.expect("it is logged")).unwrap();
    assert!(dropped == 10 || dropped == 11, "{dropped}");
    assert_eq!(notes.texts().len(), all - dropped + 1);
}

#[tokio::test]
async fn a_flush_ends_in_time_while_the_subscriber_blocks() {
    let (log, notes, _subscriber) = noting();
    notes.shut();
    crate::log_event!(log, WARN, "stuck");
    let began_at = Instant::now();
    log.flush(Duration::from_millis(20)).await;
    assert!(began_at.elapsed() < PATIENCE);
    notes.open();
    log.flush(PATIENCE).await;
    assert_eq!(notes.texts(), ["stuck"]);
}
