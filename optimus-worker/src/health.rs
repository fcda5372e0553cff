//! What is wrong with a worker, for its probes: [`liveness`], [`readiness`].

use std::time::Duration;

use optimus_core::broker::Broker;

use crate::shared::Shared;

/// How long a loop may not run. Leases are renewed meanwhile, because the maintenance thread does
/// not depend on the handlers.
const SILENT_MAX: Duration = Duration::from_secs(30);

/// Returns why the worker can no longer work and should be started again. An outage of Redis is no
/// reason: a new worker could not work either. A turn that has no answer is none: the connection is
/// given up once no bytes move, and a long turn on a slow link ends.
pub(crate) fn liveness(shared: &Shared) -> Vec<String> {
    let mut problems = Vec::new();
    if shared.shutdown.roles().is_cancelled() {
        return problems;
    }
    let (claimer, maintenance) =
        (shared.metrics.beats.claimer.age(), shared.metrics.beats.maintenance.age());
    if claimer > SILENT_MAX {
        problems.push(format!(
            "the claim loop has not run for {} s: handlers block all threads of the runtime",
            claimer.as_secs()
        ));
    }
    if maintenance > SILENT_MAX {
        problems
            .push(format!("the maintenance thread has not run for {} s", maintenance.as_secs()));
    }
    problems
}

/// Returns why the worker does not take tasks now.
pub(crate) fn readiness(shared: &Shared) -> Vec<String> {
    let mut problems = Vec::new();
    if shared.shutdown.is_quiet() {
        problems.push("the worker ends".to_owned());
    }
    if is_down(shared) {
        problems.push("there is no connection to Redis".to_owned());
    } else if !lease_is_certain(shared) {
        problems.push("Redis does not answer heartbeats in time".to_owned());
    }
    problems
}

fn is_down(shared: &Shared) -> bool {
    [&shared.broker, &shared.maintenance].into_iter().any(Broker::is_down)
}

fn lease_is_certain(shared: &Shared) -> bool {
    shared.queues.iter().all(|queue| !queue.lease_left().is_zero())
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::test_worker::idle_worker;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_does_not_run_for_30_s_ends_the_liveness() {
        let (_, shared) = idle_worker("silent-loops").await;
        assert_eq!(liveness(&shared), [""; 0]);
        advance(SILENT_MAX + Duration::from_secs(1)).await;
        let problems = liveness(&shared);
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("claim loop") && problems[0].contains("31 s"), "{problems:?}");
        shared.shutdown.stop_roles();
        assert_eq!(liveness(&shared), [""; 0], "its loops have ended because the worker ends");
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_only_waits_beats_and_one_that_blocks_does_not() {
        let (_, shared) = idle_worker("waiting-loop").await;
        let mut config = shared.config.clone();
        config.metrics = Some(([127, 0, 0, 1], 0).into());
        let (watched, config) = (shared.clone(), config);
        let waiting = tokio::spawn(async move {
            watched.metrics.beats.claimer.watch(&config, std::future::pending::<()>()).await;
        });
        tokio::time::sleep(10 * SILENT_MAX).await;
        assert!(shared.metrics.beats.claimer.age() < Duration::from_secs(3));
        // Nothing polls it from here on, as if a handler blocked the only thread.
        waiting.abort();
        advance(SILENT_MAX + Duration::from_secs(1)).await;
        assert!(liveness(&shared).iter().any(|problem| problem.contains("claim loop")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_is_ready_while_its_lease_is_certain_and_it_does_not_end() {
        let (_, shared) = idle_worker("readiness").await;
        assert_eq!(readiness(&shared), [""; 0]);
        advance(Duration::from_secs(14)).await;
        assert_eq!(readiness(&shared), ["Redis does not answer heartbeats in time"]);
        shared.queues[0].registered(tokio::time::Instant::now(), Duration::from_secs(15));
        assert_eq!(readiness(&shared), [""; 0]);
        shared.shutdown.begin();
        assert_eq!(readiness(&shared), ["the worker ends"]);
    }
}
