//! A subscriber of `tracing` that passes each event to the test.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock},
};

use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::NoSubscriber,
};

/// While a process has a single dispatcher, `tracing` asks only the thread that reaches an event
/// first whether anybody wants that event, and keeps the answer. Without a second dispatcher, a
/// thread of another test would turn an event off for the test that waits for it.
static SECOND_DISPATCHER: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// An event, as a log would show it.
#[derive(Debug, Clone)]
pub struct LogEvent {
    /// The place of the event: a module, unless the event names another target.
    pub target: &'static str,
    /// The level of the event.
    pub level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl LogEvent {
    /// Returns the text of a field, or an empty text if the event does not have it.
    pub fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }

    /// Returns the text of the event, without its fields.
    pub fn message(&self) -> &str {
        self.get("message")
    }
}

/// Calls a function of the test with each event, and ignores spans. Clones share the function.
#[derive(Clone)]
pub struct EachEvent {
    target: &'static str,
    level: Level,
    each: Arc<dyn Fn(LogEvent) + Send + Sync>,
}

impl EachEvent {
    /// Passes on all events. The function may block or panic, because it runs where a subscriber
    /// would.
    pub fn new(each: impl Fn(LogEvent) + Send + Sync + 'static) -> Self {
        LazyLock::force(&SECOND_DISPATCHER);
        Self { target: "", level: Level::TRACE, each: Arc::new(each) }
    }

    /// Passes on only the events whose target begins with this text.
    #[must_use]
    pub fn of(self, target: &'static str) -> Self {
        Self { target, ..self }
    }

    /// Passes on only the events of this level and of more severe levels.
    #[must_use]
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }
}

impl Subscriber for EachEvent {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Code that asks whether it should make an event has neither.
        !metadata.is_span()
            && metadata.target().starts_with(self.target)
            && *metadata.level() <= self.level
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let (target, level) = (event.metadata().target(), *event.metadata().level());
        (self.each)(LogEvent { target, level, fields: fields.0 });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}
