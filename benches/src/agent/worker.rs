//! The agent that runs tasks. It is a worker as in any program.

use anyhow::{Context as _, bail};
use optimus::Worker;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::protocol::{Reply, WorkOrder, WorkSettings, queue_names};
use super::tally::Tally;
use super::{obey_each, runtime};

struct Running {
    stop: oneshot::Sender<()>,
    ended: JoinHandle<optimus::Result<()>>,
}

pub(super) fn serve(settings: &WorkSettings) -> anyhow::Result<()> {
    Tally::prepare(settings.numbers);
    let runtime = runtime()?;
    let mut running: Option<Running> = None;
    obey_each(|order| match order {
        WorkOrder::Start => {
            let worker = Worker::builder(&settings.url)
                .quiet()
                .concurrency(settings.in_flight)
                .queues(queue_names(settings.queues))
                .build()?;
            let (stop, stopped) = oneshot::channel();
            let ended = runtime.spawn(worker.run_until(async move { drop(stopped.await) }));
            running = Some(Running { stop, ended });
            Ok(Reply::Started)
        }
        WorkOrder::Executed => Ok(Reply::Executed(Tally::get().executed())),
        WorkOrder::Stop => {
            let Some(Running { stop, ended }) = running.take() else { bail!("nothing runs") };
            // If the receiver is gone, the worker has ended, and its error is reported below.
            let _ = stop.send(());
            runtime.block_on(ended).context("the worker panicked")??;
            Ok(Reply::Stopped(Tally::get().tallied()))
        }
    })
}
