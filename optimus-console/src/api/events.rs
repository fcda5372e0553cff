//! The stream of events, from which pages learn what has changed.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    time::{Duration, Instant},
};

use axum::{
    http::HeaderMap,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use futures_util::{Stream, stream};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    problem::{ErrorBody, Problem},
    sampling::{Listening, Snapshot},
    seat::{Asked, Seat},
};

/// How often a comment keeps proxies from closing the stream.
const COMMENT_EVERY: Duration = Duration::from_secs(15);
/// After this time a stream ends, so that the browser shows again who it is.
const LASTS: Duration = Duration::from_secs(15 * 60);
/// How many queues a page can name.
const QUEUES_MAX: usize = 8;

/// What is listened to.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsOf {
    /// Also send the rows of these queues: up to 8 names with commas between them.
    queue: Option<String>,
}

/// Sends `overview` events each 5 s and after each act, and `queue` events of named queues. A
/// browser that reads too slowly is dropped, and comes back with `Last-Event-ID`.
#[utoipa::path(get, path = "/api/v1/events", tag = "look", params(EventsOf), responses(
    (status = 200, content_type = "text/event-stream", body = String),
    (status = 503, body = ErrorBody)))]
pub(crate) async fn events(
    seat: Seat,
    headers: HeaderMap,
    Asked(asked): Asked<EventsOf>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let names = asked.queue.unwrap_or_default();
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty()).take(QUEUES_MAX);
    let queues: Vec<String> = names
        .map(|name| seat.queue(name).map(|queue| queue.to_string()))
        .collect::<Result<_, Problem>>()?;
    let listening = seat.app.sampling.listen(&seat.app)?;
    let known = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    let first = seat.app.sampling.snapshot().await?;
    let mut listener = Listener {
        seat,
        queues,
        listening,
        known,
        begun: Instant::now(),
        operations: None,
        ready: VecDeque::new(),
    };
    listener.hear(&first).await;
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok(event), listener))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(COMMENT_EVERY)))
}

/// One open stream.
struct Listener {
    seat: Seat,
    queues: Vec<String>,
    listening: Listening,
    /// The last event that the browser has.
    known: Option<u64>,
    begun: Instant,
    /// When each operation has last come further.
    operations: Option<HashMap<String, u64>>,
    ready: VecDeque<Event>,
}

impl Listener {
    /// Returns the next event; `None` ends the stream.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            // An error means that this browser is too far behind.
            let snapshot = self.listening.news.recv().await.ok()?;
            if self.begun.elapsed() >= LASTS || !self.seat.is_still_signed_in() {
                return None;
            }
            self.hear(&snapshot).await;
        }
    }

    /// Sends the operations that have come further.
    fn hear_of_operations(&mut self, snapshot: &Snapshot) {
        let (identity, payloads) = (&self.seat.identity, self.seat.payloads());
        let mut now = HashMap::new();
        for row in snapshot.operations(identity, payloads) {
            // The overview has those that were there before.
            let is_news = self
                .operations
                .as_ref()
                .is_some_and(|known| known.get(&row.id) != Some(&row.updated_ms));
            now.insert(row.id.clone(), row.updated_ms);
            if is_news {
                let json = serde_json::to_string(&row).unwrap_or_default();
                self.ready.push_back(Event::default().event("operation").data(json));
            }
        }
        self.operations = Some(now);
    }

    async fn hear(&mut self, snapshot: &Snapshot) {
        self.hear_of_operations(snapshot);
        if self.known == Some(snapshot.number) {
            return;
        }
        self.known = Some(snapshot.number);
        let number = snapshot.number.to_string();
        let (sampling, identity) = (&self.seat.app.sampling, &self.seat.identity);
        let json = sampling.overview_json(snapshot, identity, self.seat.payloads()).await;
        self.ready.push_back(Event::default().event("overview").id(&number).data(&*json));
        for row in self.queues.iter().filter_map(|queue| snapshot.row(queue)) {
            let json = serde_json::to_string(row).unwrap_or_default();
            self.ready.push_back(Event::default().event("queue").data(json));
        }
    }
}
