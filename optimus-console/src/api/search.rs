//! Finds a task, a queue, a cause or a process by a text.

use std::{cmp::Reverse, collections::BTreeSet};

use axum::Json;
use futures_util::{StreamExt, stream};
use optimus_core::{Error, Key, QueueName, TaskId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::processes::seen_page;
use crate::{
    problem::{ErrorBody, Problem},
    sampling::{CAUSES_QUEUES_MAX, Causes, Snapshot},
    seat::{Asked, Seat},
    view::FailureRow,
};

/// The longest text.
const TEXT_CHARS: usize = 200;
/// How many hits of each kind.
const HITS_MAX: usize = 10;
/// How many queues are asked for an id at once.
const QUEUES_AT_ONCE: usize = 250;
/// How many queues are asked for the names of their tasks, and how many names are asked for.
const QUEUES_MAX: usize = 500;
const NAMES_MAX: usize = 1_000;
const REQUESTS_MAX: usize = 16;
const PROCESSES_MAX: usize = 128;
const SCANS_MAX: usize = 20;

/// What is looked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SearchOf {
    /// An id with or without its queue, a biz id, or a part of the name of a queue, of a cause, of
    /// a process or of a machine.
    q: String,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchPage {
    q: String,
    hits: Vec<Hit>,
    /// The kinds of which there are more hits than the ten that are shown.
    more: BTreeSet<&'static str>,
    /// Queues whose tasks can be looked through for the text.
    scan: Vec<Scan>,
    /// Queues that Redis refuses to read, because another program has written one of their keys.
    /// Tasks of theirs may be missing among the hits.
    unread: BTreeSet<String>,
    /// How many queues with dead tasks were not looked through for causes: those with fewest.
    causes_left_out: usize,
    /// In how many queues with tasks no biz id was looked up. The workers of a queue tell the names
    /// of its tasks, without which no biz id is found: none has served these queues for a while, or
    /// there are too many.
    biz_ids_left_out: usize,
}

/// The queues that could not be read.
#[derive(Default)]
struct Unread(BTreeSet<String>);

impl Unread {
    /// Returns what was read; `None` if only this queue can't be read, which hides no other.
    fn skip<T>(&mut self, queue: &QueueName, read: Result<T, Error>) -> Result<Option<T>, Error> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(problem) if problem.is_unavailable() => Err(problem),
            Err(_) => {
                self.0.insert(queue.to_string());
                Ok(None)
            }
        }
    }
}

/// Something that was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Hit {
    /// `task`, `biz_id`, `queue`, `failure` or `process`.
    kind: &'static str,
    id: String,
    text: String,
    /// The page of it in the console.
    href: String,
}

/// A queue that can be looked through.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Scan {
    queue: String,
    href: String,
}

/// The first hits of each kind.
#[derive(Default)]
struct FirstHits {
    hits: Vec<Hit>,
    more: BTreeSet<&'static str>,
}

impl FirstHits {
    /// Adds hits of one kind.
    fn add(&mut self, mut found: Vec<Hit>) {
        if let Some(above) = found.get(HITS_MAX) {
            self.more.insert(above.kind);
        }
        found.truncate(HITS_MAX);
        self.hits.extend(found);
    }
}

/// Finds a task by its id or biz id; queues, causes of deaths and processes by a part of a name.
#[utoipa::path(get, path = "/api/v1/search", tag = "look", params(SearchOf), responses(
    (status = 200, body = SearchPage), (status = 400, body = ErrorBody)))]
pub(crate) async fn search(
    seat: Seat,
    Asked(asked): Asked<SearchOf>,
) -> Result<Json<SearchPage>, Problem> {
    let q = asked.q.trim().to_owned();
    if q.is_empty() || q.chars().count() > TEXT_CHARS {
        return Err(Problem::invalid(format!("search for 1 to {TEXT_CHARS} characters")));
    }
    let snapshot = seat.app.sampling.snapshot().await?;
    let mut unread = Unread::default();
    let mut found = FirstHits::default();
    found.add(by_id(&seat, &snapshot, &q, &mut unread).await?);
    let (hits, biz_ids_left_out) = by_biz_id(&seat, &snapshot, &q, &mut unread).await?;
    found.add(hits);
    let text = q.to_lowercase();
    found.add(queues(&seat, &snapshot, &text));
    let causes = seat.app.sampling.causes(&snapshot, &seat.identity.queues, CAUSES_QUEUES_MAX);
    let causes = causes.await;
    found.add(with_cause(&seat, &causes, &text));
    found.add(processes(&seat, &text).await?);
    let mut rows: Vec<_> = snapshot.seen_by(&seat.identity).map(|entry| &entry.row).collect();
    rows.sort_by_key(|row| Reverse(row.counts.dead + row.counts.ready));
    let scan = rows.iter().take(SCANS_MAX).map(|row| Scan {
        queue: row.queue.clone(),
        href: format!("#/queues/{}?text={}", row.queue, escaped(&q)),
    });
    Ok(Json(SearchPage {
        scan: scan.collect(),
        q,
        hits: found.hits,
        more: found.more,
        unread: unread.0,
        causes_left_out: causes.left_out,
        biz_ids_left_out,
    }))
}

/// Returns the text with every byte escaped that a part of a URL can't have.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(escape).collect()
}

fn task_hit(kind: &'static str, id: &TaskId, text: String) -> Hit {
    Hit { kind, id: id.to_string(), text, href: format!("#/tasks/{id}") }
}

async fn by_id(
    seat: &Seat,
    snapshot: &Snapshot,
    q: &str,
    unread: &mut Unread,
) -> Result<Vec<Hit>, Problem> {
    let inspector = seat.inspector();
    let ids = if let Ok(id) = q.parse::<TaskId>() {
        let is_seen = seat.identity.queues.take(id.queue().as_str());
        is_seen.then_some(id).into_iter().collect()
    } else {
        holders(seat, snapshot, q, unread).await?
    };
    let mut hits = Vec::new();
    for id in ids.into_iter().take(HITS_MAX + 1) {
        if let Some(found) = unread.skip(id.queue(), inspector.get(&id).await)?.flatten() {
            let name = found.record.and_then(Result::ok).map(|record| record.task);
            let text = format!("{} {}", name.unwrap_or_default(), found.state);
            hits.push(task_hit("task", &id, text.trim().to_owned()));
        }
    }
    Ok(hits)
}

/// Finds the tasks with a uuid. The queues with most tasks are asked first, and no more are once
/// it is found: two tasks hardly ever have the same one.
async fn holders(
    seat: &Seat,
    snapshot: &Snapshot,
    q: &str,
    unread: &mut Unread,
) -> Result<Vec<TaskId>, Problem> {
    let Ok(uuid) = q.parse() else { return Ok(Vec::new()) };
    let inspector = seat.inspector();
    let mut rows: Vec<_> = snapshot.seen_by(&seat.identity).map(|entry| &entry.row).collect();
    rows.sort_by_key(|row| Reverse(row.counts.kept()));
    let queues: Vec<QueueName> =
        rows.into_iter().filter_map(|row| QueueName::new(&row.queue).ok()).collect();
    for part in queues.chunks(QUEUES_AT_ONCE) {
        let found = match inspector.holders(uuid, part).await {
            Ok(found) => found,
            Err(problem) if problem.is_unavailable() => return Err(problem.into()),
            Err(_) => {
                let mut found = Vec::new();
                for queue in part {
                    let read = inspector.holders(uuid, std::slice::from_ref(queue)).await;
                    found.extend(unread.skip(queue, read)?.into_iter().flatten());
                }
                found
            }
        };
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(Vec::new())
}

/// Finds the tasks with a biz id. Also returns in how many queues with tasks none was looked up.
async fn by_biz_id(
    seat: &Seat,
    snapshot: &Snapshot,
    q: &str,
    unread: &mut Unread,
) -> Result<(Vec<Hit>, usize), Problem> {
    let inspector = seat.inspector();
    let own = snapshot.seen_by(&seat.identity);
    let own = own.filter_map(|entry| QueueName::new(&entry.row.queue).ok());
    let own: Vec<QueueName> = own.take(QUEUES_MAX).collect();
    let names: Vec<(QueueName, String)> = {
        let mut known = seat.app.known_tasks.lock().await;
        let (names, refused) = known.read(&inspector, &own).await?;
        let is_seen = |queue: &QueueName| seat.identity.queues.take(queue.as_str());
        unread.0.extend(refused.iter().filter(|queue| is_seen(queue)).map(QueueName::to_string));
        let seen = names.iter().filter(|(queue, _)| is_seen(queue));
        seen.flat_map(|(queue, tasks)| tasks.iter().map(|task| (queue.clone(), task.clone())))
            .take(NAMES_MAX)
            .collect()
    };
    let looked: BTreeSet<&str> = names.iter().map(|(queue, _)| queue.as_str()).collect();
    let rows = snapshot.seen_by(&seat.identity).map(|entry| &entry.row);
    let left_out = rows.filter(|row| {
        let queue = row.queue.as_str();
        row.counts.kept() > 0 && !looked.contains(queue) && !unread.0.contains(queue)
    });
    let left_out = left_out.count();
    let finds = names.into_iter().map(|(queue, task)| {
        let (inspector, key) = (&inspector, Key::new(queue.as_str(), task.clone(), q));
        async move { (inspector.find(&key).await, queue, task) }
    });
    let mut finds = stream::iter(finds).buffered(REQUESTS_MAX);
    let mut hits = Vec::new();
    while let Some((found, queue, task)) = finds.next().await {
        if let Some(id) = unread.skip(&queue, found)?.flatten() {
            hits.push(task_hit("biz_id", &id, format!("{task} with biz id {q}")));
        }
    }
    Ok((hits, left_out))
}

fn queues(seat: &Seat, snapshot: &Snapshot, text: &str) -> Vec<Hit> {
    let rows = snapshot.seen_by(&seat.identity).map(|entry| &entry.row);
    let found = rows.filter(|row| row.queue.to_lowercase().contains(text));
    found
        .map(|row| Hit {
            kind: "queue",
            id: row.queue.clone(),
            text: format!("{} ready, {} dead", row.counts.ready, row.counts.dead),
            href: format!("#/queues/{}", row.queue),
        })
        .collect()
}

fn with_cause(seat: &Seat, causes: &Causes, text: &str) -> Vec<Hit> {
    let rows = causes.rows.iter().map(|(queue, row)| FailureRow::of(queue, row, seat.reader()));
    let has = |part: &Option<String>| {
        part.as_deref().is_some_and(|part| part.to_lowercase().contains(text))
    };
    let found = rows.filter(|row| has(&row.outline) || has(&row.fingerprint) || has(&row.task));
    let hit = |row: FailureRow| Hit {
        kind: "failure",
        href: format!("#/failures?fingerprint={}", row.fingerprint.as_deref().unwrap_or("")),
        text: format!("{} dead in {}: {}", row.dead, row.queue, row.outline.unwrap_or_default()),
        id: row.fingerprint.unwrap_or_default(),
    };
    found.map(hit).collect()
}

async fn processes(seat: &Seat, text: &str) -> Result<Vec<Hit>, Problem> {
    let page = seen_page(seat, None, PROCESSES_MAX).await?;
    let found = page.rows.iter().filter(|process| {
        let about = &process.about;
        let texts = [Some(process.id.as_str()), Some(&about.host), about.name.as_deref()];
        texts.into_iter().flatten().any(|part| part.to_lowercase().contains(text))
    });
    let hit = |process: &optimus_core::ProcessDetails| Hit {
        kind: "process",
        id: process.id.to_string(),
        text: format!("{} pid {}", process.about.host, process.about.pid),
        href: format!("#/workers?process={}", escaped(process.id.as_str())),
    };
    Ok(found.map(hit).collect())
}
