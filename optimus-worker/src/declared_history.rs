//! What the code of tasks declares about histories: [`keep`] passes it to a queue.

use optimus_core::{
    HistoryOptions, QueueName,
    broker::{Broker, BrokerError},
    log_event,
};

use crate::task_registry::Registry;

/// Lets a queue keep at least what its tasks declare, in addition to what an operator has set. A
/// full Redis does not prevent the start of a worker: it can only become emptier by work.
pub(crate) async fn keep(
    broker: &Broker,
    registry: &Registry,
    queue: &QueueName,
) -> Result<(), BrokerError> {
    let Some(declared) = declared(registry, queue) else { return Ok(()) };
    let (days, bytes, tasks) = declared.stored();
    match broker.retain_at_least(queue, (days, bytes, &tasks)).await {
        Ok(Some(history)) => {
            let queue = queue.clone();
            let text = "the queue keeps the history that its tasks declare";
            let Some((days, bytes, tasks)) = words(&history) else { return Ok(()) };
            log_event!(broker.log(), INFO, %queue, days, bytes, tasks, "{text}");
            Ok(())
        }
        Ok(None) => Ok(()),
        Err(BrokerError::Full) => {
            let queue = queue.clone();
            let text = "Redis is full, so the history that the tasks of this queue declare may \
                        not be set; the next start of a worker sets it";
            log_event!(broker.log(), WARN, %queue, "{text}");
            Ok(())
        }
        Err(problem) => Err(problem),
    }
}

/// Returns the days, the bytes and the tasks of a history as the log shows them.
fn words(stored: &str) -> Option<(u32, String, String)> {
    const MIB: u64 = 1 << 20;
    const MB: u64 = 1_000_000;
    let history = HistoryOptions::read(stored)?;
    let bytes = match history.kept_bytes() {
        bytes if bytes.is_multiple_of(MIB) => format!("{}MiB", bytes / MIB),
        bytes if bytes.is_multiple_of(MB) => format!("{}MB", bytes / MB),
        bytes => bytes.to_string(),
    };
    let tasks = history.kept_tasks().map_or_else(|| "all".to_owned(), |tasks| tasks.join(","));
    Some((history.kept_days(), bytes, tasks))
}

/// A history has one number of days, so the longest of its tasks counts.
fn declared(registry: &Registry, queue: &QueueName) -> Option<HistoryOptions> {
    let of_task = |task: &optimus_core::TaskDefinition| {
        let options = task.options();
        let days = options.history_days().filter(|_| options.queue_name() == queue.as_str())?;
        Some((task.name(), days))
    };
    let (tasks, days): (Vec<_>, Vec<_>) = registry.iter().filter_map(of_task).unzip();
    Some(HistoryOptions::days(days.into_iter().max()?).tasks(tasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_shows_a_history_in_words() {
        let shown =
            |days, bytes: &str, tasks: &str| Some((days, bytes.to_owned(), tasks.to_owned()));
        assert_eq!(words("30 67108864 ,thumbnail,scan,"), shown(30, "64MiB", "thumbnail,scan"));
        assert_eq!(words("7 256000000 *"), shown(7, "256MB", "all"));
        assert_eq!(words("1 1048577 -"), shown(1, "1048577", ""));
        assert_eq!(words("nonsense"), None);
    }
}
