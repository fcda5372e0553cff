//! The settings of a worker, validated once: [`Config`].

use std::{net::SocketAddr, sync::Arc, time::Duration};

use optimus_core::{
    AskCredentials, Error, QueueName,
    broker::{Endpoint, Keep, SizeLimit},
    log::Level,
};

use crate::user_threads::UserThreads;

/// The longest lease. A task whose worker is lost waits for a whole lease.
const LEASE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// The most slots. With more, a heartbeat's answer, which lists all held tasks, would take too
/// long.
const CONCURRENCY_MAX: usize = 100_000;
/// The shortest lease. A heartbeat is due after a third of the lease and must survive a slow round
/// trip.
const LEASE_MIN: Duration = Duration::from_millis(500);
/// The shortest poll interval. A shorter one would keep an idle worker busy with polls.
const POLL_MIN: Duration = Duration::from_millis(10);
const POLL_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// In effect no limit, but short enough to add to an instant.
pub(crate) const FOREVER: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// How a worker divides its slots between its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Order {
    /// Each queue gets its share of the slots, by weight; see [`crate::shares`].
    #[default]
    Weighted,
    /// A queue gets the slots that the queues before it leave idle.
    Strict,
}

/// The checked settings of a worker.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) url: String,
    /// Credentials that replace those of the URL.
    pub(crate) credentials: Option<AskCredentials>,
    pub(crate) namespace: String,
    /// A name that replaces the machine's name.
    pub(crate) name: Option<String>,
    /// The served queues with their weights. If empty, the worker serves the queues of its tasks.
    pub(crate) queues: Vec<(QueueName, u32)>,
    pub(crate) order: Order,
    pub(crate) concurrency: usize,
    pub(crate) lease: Duration,
    pub(crate) poll: Duration,
    pub(crate) misfit_grace: Duration,
    /// The limits of a queue's dead tasks. The same limits apply to its cancelled tasks.
    pub(crate) keep_ended: Keep,
    /// How long an empty queue is kept.
    pub(crate) unused_for: Duration,
    pub(crate) shutdown_grace: Duration,
    pub(crate) result_limit: SizeLimit,
    pub(crate) banner: bool,
    /// What the worker warns of when it starts: variables of the environment without effect.
    pub(crate) without_effect: Vec<String>,
    /// Where metrics and probes are served.
    pub(crate) metrics: Option<SocketAddr>,
    /// The threads in code of the program outside of handlers.
    pub(crate) user_threads: Arc<UserThreads>,
    /// The level at which each success is logged.
    pub(crate) success_level: Level,
}

impl Config {
    /// Refuses invalid settings before the worker starts.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Endpoint::with_credentials(&self.url, self.credentials.clone())?;
        let refuse = |what: &str| Err(Error::invalid(format!("worker: {what}")));
        if self.concurrency == 0 {
            return refuse("the concurrency is 0, so no task would run; set at least 1");
        }
        optimus_core::validate_name(&self.namespace)
            .map_err(|problem| Error::invalid(format!("worker: namespace: {problem}")))?;
        if let Some(name) = &self.name {
            optimus_core::validate_name(name)
                .map_err(|problem| Error::invalid(format!("worker: name: {problem}")))?;
        }
        if self.concurrency > CONCURRENCY_MAX {
            return refuse(
                "the concurrency is above 100,000, which is more than a process can run; set a \
                 lower one",
            );
        }
        if self.lease > LEASE_MAX {
            return refuse(
                "the lease is above a day, and the tasks of a lost worker would wait that long; \
                 set a shorter one",
            );
        }
        for (at, (queue, _)) in self.queues.iter().enumerate() {
            if self.queues[..at].iter().any(|(other, _)| other == queue) {
                return refuse(&format!("queue {queue} is served twice; give it a weight instead"));
            }
        }
        if self.lease < LEASE_MIN {
            return refuse(
                "the lease is below 500 ms, which is too short for heartbeats; set a longer one",
            );
        }
        if self.poll < POLL_MIN {
            return refuse(
                "the poll interval is below 10 ms, which would keep an idle worker busy; set a \
                 longer one",
            );
        }
        if self.poll > POLL_MAX {
            return refuse(
                "the poll interval is above a day, and a task whose wakeup was lost would wait \
                 that long; set a shorter one",
            );
        }
        if self.queues.iter().any(|(_, weight)| *weight == 0) {
            return refuse("a queue has weight 0; leave it out, or set at least 1");
        }
        Ok(())
    }
}

/// Returns the queues in the syntax of `OPTIMUS_QUEUES`: `critical=3, default` or `critical >
/// default`.
pub(crate) fn describe(order: Order, queues: &[(QueueName, u32)]) -> String {
    let named = |(name, weight): &(QueueName, u32)| match weight {
        1 => name.to_string(),
        weight => format!("{name}={weight}"),
    };
    let queues: Vec<String> = queues.iter().map(named).collect();
    queues.join(if order == Order::Strict { " > " } else { ", " })
}

/// Parses `critical=3,default` (shares by weight; the default weight is 1) or `critical>default`
/// (strict order).
pub(crate) fn parse_queues(text: &str) -> Result<(Order, Vec<(QueueName, u32)>), Error> {
    let invalid = |part: &str, why: &str| {
        Error::invalid(format!(
            "OPTIMUS_QUEUES: {part:?} {why}; write critical=3,default=1 for shares by weight, or \
             critical>default for strict order"
        ))
    };
    let order = if text.contains('>') { Order::Strict } else { Order::Weighted };
    let separator = if order == Order::Strict { '>' } else { ',' };
    let mut queues = Vec::new();
    for part in text.split(separator).map(str::trim) {
        if order == Order::Strict && part.contains('=') {
            return Err(invalid(part, "has a weight, which strict order does not use"));
        }
        let (name, weight) = part.split_once('=').unwrap_or((part, "1"));
        let name = QueueName::new(name.trim())
            .map_err(|problem| invalid(part, &format!("is invalid: {problem}")))?;
        let weight = weight.trim().parse().ok().filter(|weight| *weight > 0);
        let weight = weight.ok_or_else(|| invalid(part, "has no weight above zero"))?;
        if queues.iter().any(|(other, _)| *other == name) {
            return Err(invalid(part, "is named twice"));
        }
        queues.push((name, weight));
    }
    Ok((order, queues))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Order, Vec<(String, u32)>) {
        let (order, queues) = parse_queues(text).unwrap();
        (order, queues.into_iter().map(|(name, weight)| (name.to_string(), weight)).collect())
    }

    #[test]
    fn queues_are_read_by_weight_or_in_strict_order() {
        let weighted = vec![("critical".into(), 3), ("default".into(), 1)];
        assert_eq!(read("critical=3, default"), (Order::Weighted, weighted));
        assert_eq!(read("a>b").0, Order::Strict);
    }

    #[test]
    fn the_queues_of_a_worker_are_shown_in_the_syntax_of_the_environment() {
        for text in ["critical=3, default", "a > b"] {
            let (order, queues) = parse_queues(text).unwrap();
            assert_eq!(describe(order, &queues), text);
        }
    }

    #[test]
    fn an_invalid_queue_is_refused_with_the_syntax() {
        for text in ["", "a,", "a=0", "a=x", "a b", "a,a", "a{b}", "a>b=3", "a=3>b", "a>b,c"] {
            let problem = parse_queues(text).expect_err(text);
            assert!(problem.to_string().contains("critical>default"), "{problem}");
        }
    }
}
