//! `optimus exporter`: metrics of all queues for Prometheus.

use std::{net::SocketAddr, time::Duration};

use clap::Args;
use optimus_core::{QueueName, Sample, Sampler};
use optimus_metrics::{Listener, Server, parse_address};
use serde_json::json;

use crate::{
    exporter::Page,
    failure::{Exit, Failure},
    parse,
    session::Session,
    signals::asked_to_end,
    unread::unreadable,
};

/// The shortest time between two reads. A shorter one would be work for Redis that nobody sees.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// Serve metrics of queues, processes and schedules for Prometheus until Ctrl-C.
///
/// One exporter is enough for a namespace. It reads Redis once in each interval, however often it
/// is asked: 1 to 16 short commands a queue. `/metrics` has the metrics, `/scale?queue=mail` the
/// slots that a queue needs as JSON, and `/livez` and `/readyz` are probes of the exporter itself.
#[derive(Debug, Args)]
pub(crate) struct Exporter {
    /// Where to listen: `0.0.0.0:9187` for all that can reach the machine.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9187",
          value_parser = parse_address)]
    listen: SocketAddr,
    /// The time between two reads of Redis.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = parse::duration)]
    every: Duration,
    /// The time in which a backlog is to end, for the slots that a queue needs.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse::duration)]
    target: Duration,
    /// The queues; may be repeated [default: all].
    #[arg(long = "queue", value_name = "QUEUE", allow_hyphen_values = true)]
    queues: Vec<QueueName>,
    /// The most queues to show. Of more, those that are first by name are shown.
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = parse::limit)]
    queues_max: usize,
}

pub(crate) async fn run(command: Exporter, session: &Session<'_>) -> Result<Exit, Failure> {
    // Signals are heard before anybody is told that it runs.
    tokio::select! {
        biased;
        () = asked_to_end() => Ok(Exit::Done),
        failed = serve(command, session) => failed,
    }
}

/// Serves until it is dropped, or can't start.
async fn serve(command: Exporter, session: &Session<'_>) -> Result<Exit, Failure> {
    let Exporter { listen, every, target, queues, queues_max } = command;
    if every < EVERY_MIN || target.is_zero() {
        return Err(Failure::usage("write --every 1s or more, and a --target above 0"));
    }
    let listener = Listener::bind(listen).map_err(|problem| {
        Failure::new(format!(
            "can't listen on {listen}: {problem}; another program may use the port: choose one \
             with --listen"
        ))
    })?;
    let page = Page::new(every);
    let mut sampler = Sampler::new(session.inspector(), queues, queues_max, target);
    // If Redis can't be used, a supervisor hears it now.
    let first = sampler.sample().await?;
    let mut wrong = Vec::new();
    warn_of(problems(&first), &mut wrong, session);
    page.show(first);
    let shown = page.clone();
    let server = Server::start(listener, move |path, query| shown.answer(path, query))
        .map_err(|problem| Failure::new(format!("can't start a thread: {problem}")))?;
    let url = format!("http://{}/metrics", server.address());
    session.out.place(&json!({ "url": url }), &url)?;
    session.out.hint("Ctrl-C ends the exporter");
    loop {
        tokio::time::sleep(every).await;
        match sampler.sample().await {
            Ok(sample) => {
                warn_of(problems(&sample), &mut wrong, session);
                page.show(sample);
            }
            Err(problem) => {
                warn_of(vec![format!("can't read Redis: {problem}")], &mut wrong, session);
                page.fail(&problem);
            }
        }
    }
}

fn problems(sample: &Sample) -> Vec<String> {
    sample.unreadable.iter().map(|(queue, problem)| unreadable(queue, problem)).collect()
}

/// Warns of what was not wrong at the read before.
fn warn_of(now: Vec<String>, before: &mut Vec<String>, session: &Session<'_>) {
    for problem in now.iter().filter(|problem| !before.contains(problem)) {
        session.out.warn(problem);
    }
    *before = now;
}
