//! A queue that keeps a history, and the calls that set and read it.

use optimus_core::{TaskId, TaskState, broker::BrokerError};
use redis::cmd;

use crate::{
    bench::{Bench, START},
    world::{NOW, World},
};

/// The number of the day of [`NOW`].
pub(crate) const TODAY: u64 = (START + NOW) / 86_400_000;
/// So many summaries that the next call of completions removes some.
const SUMMARIES: u64 = 1_125;

impl World {
    /// Keeps two days, and adds an older one and the summaries of many successes.
    pub(crate) async fn keep_some(&self, bench: &Bench, situation: &str) {
        let kept = bench.at(5_000).retain(&bench.queue, Some((2, 1 << 20, "*"))).await;
        kept.expect("it is not refused");
        let line =
            |at: u64| format!("{} {at} job 1 5 w", TaskId::new(bench.queue.clone()).stored());
        for (name, score) in [
            (format!("success:{}", TODAY - 9), format!("{}", TODAY - 9)),
            (format!("dead:{}", TODAY - 9), format!("{}.5", TODAY - 9)),
            (format!("success:{TODAY}"), format!("{TODAY}")),
        ] {
            let (entry, sizes) = (line(START), bench.key("history_bytes"));
            let size = entry.len();
            let () = bench.raw(cmd("RPUSH").arg(bench.key(&name)).arg(entry)).await;
            let () = bench.raw(cmd("ZADD").arg(bench.key("histories")).arg(score).arg(&name)).await;
            let () = bench.raw(cmd("HSET").arg(&sizes).arg(&name).arg(format!("{size} 0"))).await;
            let () = bench.raw(cmd("HINCRBY").arg(&sizes).arg("all").arg(size)).await;
        }
        if situation == "kept, all" {
            let mut push = cmd("LPUSH");
            push.arg(bench.key("success"));
            (0..SUMMARIES).for_each(|at| {
                push.arg(line(START - at));
            });
            let () = bench.raw(&push).await;
        }
    }

    pub(crate) async fn history_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, queue) = (bench.at(NOW), &bench.queue);
        let state = match situation {
            "kept, deaths" => TaskState::Dead,
            _ => TaskState::Success,
        };
        match (script, situation) {
            ("annotate", _) => self.log_in(bench, situation).await,
            ("retain", "kept, set") => {
                broker.retain(queue, Some((180, 1 << 21, ",job,"))).await.map(drop)
            }
            ("retain", "kept, declared") => {
                broker.retain_at_least(queue, (180, 1 << 21, ",job,")).await.map(drop)
            }
            ("retain", "kept, no more") => broker.retain_no_more(queue).await.map(drop),
            ("retain", _) => broker.retain(queue, None).await.map(drop),
            _ => broker.history(queue, (state, TODAY), 0, 9).await.map(drop),
        }
    }
}
