//! What the exporter shows of its last read: [`Page`].

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use optimus_core::{Error, QueueName, Sample};
use optimus_metrics::{Answer, Exposition, names};
use serde_json::json;

use super::sample;

/// How long a read may take beyond its interval.
const LATE_MAX: Duration = Duration::from_secs(60);

/// The last read. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Page(Arc<Mutex<Shown>>, Duration);

#[derive(Debug)]
struct Shown {
    /// The last read, or why it failed.
    last: Result<Sample, String>,
    /// When that was.
    at: Instant,
    /// When the last read that did not fail was, or when the exporter started.
    read_at: Instant,
    failed: u64,
}

impl Page {
    /// `every` is the time between two reads.
    pub(crate) fn new(every: Duration) -> Self {
        let (last, now) = (Ok(Sample::default()), Instant::now());
        let shown = Shown { last, at: now, read_at: now, failed: 0 };
        Self(Arc::new(Mutex::new(shown)), every)
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn show(&self, sample: Sample) {
        let mut shown = self.shown();
        (shown.last, shown.at) = (Ok(sample), Instant::now());
        shown.read_at = shown.at;
    }

    pub(crate) fn fail(&self, problem: &Error) {
        let mut shown = self.shown();
        (shown.last, shown.at) = (Err(problem.to_string()), Instant::now());
        shown.failed += 1;
    }

    /// Answers a request from what was read last.
    pub(crate) fn answer(&self, path: &str, query: &str) -> Answer {
        let shown = self.shown();
        match path {
            "/metrics" => Answer::metrics(shown.text()),
            "/scale" => shown.scale(query),
            "/livez" => Answer::probe(&shown.silence(self.1)),
            "/readyz" => match &shown.last {
                Ok(_) => Answer::probe(&shown.silence(self.1)),
                Err(problem) => Answer::probe(std::slice::from_ref(problem)),
            },
            _ => Answer::not_found("here are /metrics, /scale?queue=NAME, /livez and /readyz"),
        }
    }
}

impl Shown {
    fn text(&self) -> Exposition {
        let mut text = Exposition::default();
        text.family(&names::UP).count(&[], u64::from(self.last.is_ok()));
        text.family(&names::SAMPLE_AGE).value(&[], self.read_at.elapsed().as_secs_f64());
        text.family(&names::SAMPLES_FAILED).count(&[], self.failed);
        text.family(&names::BUILD).count(&[env!("CARGO_PKG_VERSION")], 1);
        if let Ok(sample) = &self.last {
            sample::write(sample, &mut text);
        }
        text
    }

    /// Answers with the slots of a queue. A failed read of all or of this queue is an error, so
    /// that a scaler keeps what it has, and does not take it for an empty queue.
    fn scale(&self, query: &str) -> Answer {
        let sample = match &self.last {
            Ok(sample) => sample,
            Err(problem) => return Answer::probe(std::slice::from_ref(problem)),
        };
        let mut named = query.split('&').filter_map(|pair| pair.strip_prefix("queue="));
        let (Some(name), None) = (named.next(), named.next()) else {
            return Answer::bad_request("write /scale?queue=NAME, with one queue");
        };
        if let Err(problem) = QueueName::new(name) {
            return Answer::bad_request(&problem.to_string());
        }
        let unreadable = sample.unreadable.iter().find(|(queue, _)| queue.as_str() == name);
        if let Some((_, problem)) = unreadable {
            return Answer::probe(&[problem.to_string()]);
        }
        let found = sample.queues.iter().find(|queue| queue.seen.queue.as_str() == name);
        let want_slots = match found {
            Some(queue) => queue.want_slots,
            // A queue that was never used is not listed. It is no error: a scaler would start its
            // fallback pods in each new deployment that begins at zero.
            None if sample.has_all => 0,
            None => {
                return Answer::not_found(
                    "this queue is not read; name it with --queue, or read more with --queues-max",
                );
            }
        };
        let known = found.is_some();
        let answer = json!({ "queue": name, "known": known, "want_slots": want_slots });
        Answer::json(answer.to_string())
    }

    fn silence(&self, every: Duration) -> Vec<String> {
        let age = self.at.elapsed();
        let is_late = age > every + LATE_MAX;
        is_late.then(|| format!("the last read was {} s ago", age.as_secs())).into_iter().collect()
    }
}
