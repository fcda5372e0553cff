//! Measures the cost of a plain task in a used queue, which must be the same as in a new queue.

use std::time::Duration;

use anyhow::ensure;
use optimus_core::WorkerId;
use optimus_core::broker::{Batch, Broker, Endpoint, Failure, FailureOutcome, Give, Release};

use super::Measurement;
use super::one_drain::Drain;
use super::plain;
use crate::bench::{Bench, progress};
use crate::field::{Field, Sample};
use crate::row::{Params, Row, params};
use crate::workers::Staff;

pub(super) const USED: Measurement = Measurement {
    name: "used",
    about: "a plain task in a queue that has been used, compared with a new one",
    run: used,
};

const IN_FLIGHT: usize = 100;
const FAR: Duration = Duration::from_secs(24 * 3_600);
const LEASE: Duration = Duration::from_secs(60);
const NAMESPACE: &str = "optimus";

/// The content of a queue before a drain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// The number of tasks that remain in the queue.
    pub(super) tasks: u64,
    /// The function that adds this content to the queue.
    pub(super) put: fn(&str) -> anyhow::Result<()>,
}

fn used(bench: &Bench) -> anyhow::Result<Vec<Row>> {
    let tasks = bench.scale.tasks(100_000);
    let shown = |queue: &str| -> Params {
        let tasks = ("tasks", tasks.into());
        params([("queue", queue.into()), ("in_flight", IN_FLIGHT.into()), tasks])
    };
    let (mut pristine, mut used): (Vec<Sample>, Vec<Sample>) = Default::default();
    // Each run measures both queues, so that they are compared within the same minute.
    for run in 1..=bench.scale.runs {
        let drain = Drain::plain(tasks, Staff::one(IN_FLIGHT));
        progress(USED.name, &shown("both"), &format!("run {run} of {}", bench.scale.runs));
        let first = drain.run(bench)?;
        let second =
            Drain { before: Some(Before { tasks: 3, put: use_queue }), ..drain }.run(bench)?;
        let both = [&second, &first].map(|sample| sample.get(Field::RedisCpuUsPerTask));
        let over = both[0].zip(both[1]).map(|(with, without)| with - without);
        used.push(second.with_known(Field::RedisUsOverPlain, over));
        pristine.push(first);
    }
    Ok([("pristine", &pristine), ("used", &used)]
        .map(|(queue, samples)| Row::of_runs(USED.name, shown(queue), samples))
        .into())
}

/// Leaves a dead, a retried and a delayed task in the queue. The last two remain there for a long
/// time.
fn use_queue(url: &str) -> anyhow::Result<()> {
    let endpoint = Endpoint::parse(url).map_err(|problem| anyhow::anyhow!(problem))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (broker, queue) = (Broker::new(endpoint, NAMESPACE, "bench"), plain::queue()?);
        let worker = WorkerId::from_stored("earlier");
        broker.register(&queue, &worker, LEASE, "{}").await?;
        let tasks = [plain::submission()?, plain::submission()?, plain::submission()?];
        let batch = Batch {
            queue: &queue,
            client: "earlier",
            number: 1,
            since: 0,
            keep: true,
            tasks: &tasks,
        };
        broker.submit(&batch).await?;
        let claim = broker.claim(&queue, &worker, 1, tasks.len()).await?;
        let leases: Vec<_> = plain::leases(&claim, &worker).collect();
        ensure!(leases.len() == tasks.len(), "a claim was not filled");
        let failed = [FailureOutcome::Dead, FailureOutcome::Retry(FAR)].into_iter().zip(&leases);
        let failed: Vec<_> = failed
            .map(|(outcome, lease)| Failure {
                lease: lease.clone(),
                outcome,
                shut: None,
                error: r#"{"reason":"failed"}"#.into(),
            })
            .collect();
        let later = [Release { lease: leases[2].clone(), give: Give::Snooze(FAR) }];
        let calls = [
            broker.fail_call(&queue, &worker, &failed),
            broker.release_call(&queue, &worker, &later),
        ];
        for call in calls {
            ensure!(broker.report(call).await?.stale.is_empty(), "a report was refused");
        }
        broker.leave(&queue, &worker).await?;
        Ok(())
    })
}
