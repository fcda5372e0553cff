//! The table of all metrics: the only place with their names, units, texts and labels.
//!
//! Names follow the conventions of Prometheus: base units at the end, `_total` for counters. The
//! values of a label are few: queues, names of tasks, outcomes and states, and never an id, a lane
//! or a machine.

/// What kind of number a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A number that only grows while a process runs.
    Counter,
    /// A number at one moment.
    Gauge,
    /// Counts of durations by their length, with their sum.
    Histogram,
}

impl Kind {
    /// Returns the word of the text format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// The name, with its unit.
    pub name: &'static str,
    /// What kind of number it is.
    pub kind: Kind,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

macro_rules! table {
    ($all:ident: $doc:literal; $(
        $id:ident = $name:literal $kind:ident [$($label:literal),*] $help:literal;
    )+) => {
        $(#[doc = $help]
        pub const $id: Metric =
            Metric { name: $name, kind: Kind::$kind, help: $help, labels: &[$($label),*] };)+
        #[doc = $doc]
        pub const $all: &[Metric] = &[$($id),+];
    };
}

table! { OF_WORKERS: "The metrics of a worker: what its process has done since its start.";
    ATTEMPTS = "optimus_attempts_total" Counter ["queue", "task", "outcome"]
        "Attempts that ended: success, retry, dead, cancelled or snoozed.";
    ATTEMPTS_LOST = "optimus_attempts_lost_total" Counter ["queue", "task"]
        "Attempts of lost workers that this worker took back; optimus_attempts_total counts each, \
         too, as a retry, dead or cancelled.";
    ATTEMPTS_UNCOUNTED = "optimus_attempts_uncounted_total" Counter ["outcome"]
        "Attempts that used none of the retries, or of which it is unknown: given_back, stale \
         or unanswered.";
    MISFITS = "optimus_misfits_total" Counter ["queue"]
        "How often this worker gave a task back because it can't run it: it does not know the \
         task, or a newer program has submitted it.";
    RUN = "optimus_run_seconds" Histogram ["queue", "task"]
        "How long attempts ran.";
    WAIT = "optimus_wait_seconds" Histogram ["queue", "task"]
        "How long tasks had waited at their first attempt, since their submit.";
    SLOTS = "optimus_slots" Gauge ["state"]
        "Slots of this worker: busy, idle, or withheld by an operator.";
    RUNNING = "optimus_running" Gauge ["queue"]
        "Slots that the tasks of a queue use in this worker.";
    REPORTS_HELD = "optimus_reports_held" Gauge []
        "Ends of attempts that Redis has not confirmed yet.";
    CLAIM_TURNS = "optimus_claim_turns_total" Counter ["outcome"]
        "Exchanges in which this worker sent reports and claims: answered, or failed at least \
         in part.";
    CLAIM_LOOP_AGE = "optimus_claim_loop_age_seconds" Gauge []
        "Time since the claim loop last ran; above 5 s, handlers block all threads of the \
         runtime.";
    LEASE_LEFT = "optimus_lease_left_seconds" Gauge ["queue"]
        "How long the lease of this worker is still certain; 0 if it is not.";
    CONNECTS = "optimus_redis_connects_total" Counter ["connection"]
        "Connections to Redis that were made, for claims or for maintenance.";
    BREAKS = "optimus_redis_breaks_total" Counter ["connection"]
        "Connections to Redis that broke, or were given up because no answer came.";
    BUILD = "optimus_build_info" Gauge ["version"]
        "The version of Optimus, as a label; the value is 1.";
    MEMORY = "process_resident_memory_bytes" Gauge []
        "The memory of the process.";
    CPU = "process_cpu_seconds_total" Counter []
        "The CPU time of the process.";
}

table! { OF_EXPORTER: "The metrics of the exporter: what Redis knows, so one exporter is enough.";
    UP = "optimus_redis_up" Gauge []
        "1 if the last read of Redis succeeded; 0 if not, and then no queue is shown.";
    QUEUES = "optimus_queues" Gauge []
        "Queues that are read: those of the namespace, or those that were named.";
    QUEUES_LEFT_OUT = "optimus_queues_left_out" Gauge []
        "Queues that are not shown, because there are too many.";
    QUEUE_TASKS = "optimus_queue_tasks" Gauge ["queue", "state"]
        "Tasks by state: ready, delayed, blocked, retry, working, dead or cancelled.";
    QUEUE_OLDEST = "optimus_queue_oldest_seconds" Gauge ["queue"]
        "How long the oldest of the first tasks that could run waits: since it is ready, or since \
         it is due if no worker has claimed it; 0 if there is none. One with a priority counts \
         since its submit.";
    QUEUE_DUE = "optimus_queue_due" Gauge ["queue"]
        "Delayed tasks, retries and runs of gathered tasks that are due, and that no worker has \
         claimed; 0 while workers have free slots.";
    QUEUE_UNREADABLE = "optimus_queue_unreadable" Gauge ["queue"]
        "1 if a key of the queue can't be read, so that its other numbers are left out.";
    QUEUE_ENDED = "optimus_queue_attempts_total" Counter ["queue", "outcome"]
        "Attempts that ended in the life of the queue: success, retry, dead or cancelled. Tasks \
         that were cancelled while they waited count, too.";
    QUEUE_LOST = "optimus_queue_attempts_lost_total" Counter ["queue"]
        "Attempts that were lost with their worker; optimus_queue_attempts_total counts none of \
         them as a retry.";
    QUEUE_BYTES = "optimus_queue_ended_bytes" Gauge ["queue", "state"]
        "Bytes of the tasks that are kept as dead or cancelled, without the overhead of Redis.";
    QUEUE_PAUSED = "optimus_queue_paused" Gauge ["queue"]
        "1 if the queue is paused.";
    QUEUE_SCHEDULE_LAG = "optimus_queue_schedule_lag_seconds" Gauge ["queue"]
        "How late the schedule of the queue is that is most overdue; 0 if none is. One that was \
         removed from the code counts for a minute.";
    QUEUE_SLOTS = "optimus_queue_slots" Gauge ["queue"]
        "Slots of the processes that serve the queue; they may share them with other queues.";
    QUEUE_WANT_SLOTS = "optimus_queue_want_slots" Gauge ["queue"]
        "Slots that the queue needs to keep up and to end its backlog within the target.";
    PROCESSES = "optimus_processes" Gauge []
        "Processes that run workers.";
    PROCESS_SLOTS = "optimus_process_slots" Gauge ["state"]
        "Slots of all processes: busy, or allowed.";
    SAMPLE_TIME = "optimus_sample_seconds" Gauge []
        "How long the last read of all queues took.";
    SAMPLE_AGE = "optimus_sample_age_seconds" Gauge []
        "How long ago the last read was that did not fail.";
    SAMPLES_FAILED = "optimus_samples_failed_total" Counter []
        "Reads of Redis that failed.";
}

/// The ends of the buckets of histograms, in µs. They are ends of the buckets in which workers
/// count, so each count is exact.
pub const BUCKET_ENDS_US: [u64; 20] = [
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
    1 << 21,
    1 << 22,
    1 << 23,
    1 << 24,
    1 << 25,
    1 << 27,
    1 << 29,
    1 << 31,
    1 << 33,
];

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [&str; 6] = ["connection", "outcome", "queue", "state", "task", "version"];

    fn all() -> impl Iterator<Item = &'static Metric> {
        OF_WORKERS.iter().chain(OF_EXPORTER)
    }

    #[test]
    fn each_name_follows_the_conventions_of_prometheus() {
        for Metric { name, kind, .. } in all() {
            assert!(name.starts_with("optimus_") || name.starts_with("process_"), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            if *kind == Kind::Histogram {
                assert!(name.ends_with("_seconds"), "{name}");
            }
            for suffix in ["_count", "_sum", "_bucket", "_ms", "_millis"] {
                assert!(!name.ends_with(suffix), "{name}");
            }
        }
    }

    #[test]
    fn each_metric_is_there_once_and_only_has_labels_with_few_values() {
        let mut names: Vec<&str> = all().map(|metric| metric.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OF_WORKERS.len() + OF_EXPORTER.len());
        for metric in all() {
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            for label in metric.labels {
                assert!(LABELS.contains(label), "{}: {label}", metric.name);
            }
        }
    }

    #[test]
    fn the_buckets_grow() {
        assert!(BUCKET_ENDS_US.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
