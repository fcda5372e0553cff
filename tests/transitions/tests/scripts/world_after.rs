//! The part of the world that waits for prerequisites, and the calls of relays.

use optimus_core::{
    After, Due, Prerequisite,
    PrerequisiteFailure::{Cancel, Run},
    QueueName, Submission, TaskId,
    broker::{BrokerError, Outgoing},
};

use crate::{
    acts::ms,
    after::{after, keyed, or},
    bench::{Bench, START},
    jobs::{job, ready},
    lanes::lane,
    world::{DAY, NOW, World},
};

impl World {
    /// Adds tasks that wait for others, here and in the queue `there`, where one waits for a task
    /// here.
    pub(crate) async fn wait_some(&mut self, bench: &Bench) {
        let there = TaskId::new(QueueName::new("there").expect("a name"));
        let wait = |name| after(self.id(name));
        let mut gives_up = wait("later");
        gives_up.give_up_after = Some(ms(10_000));
        let tasks = vec![
            ("needs held", ready(job()).waiting_for(wait("held"))),
            ("needs held later", ready(job().due(Due::In(DAY))).waiting_for(wait("held biz"))),
            ("needs held in lane", ready(job()).in_lane(lane("h", 1)).waiting_for(wait("held"))),
            ("runs", ready(job()).waiting_for(or(Run, wait("dead")))),
            ("stops", ready(job().biz_id("stops")).waiting_for(or(Cancel, wait("dead")))),
            ("needs stops", ready(job()).waiting_for(After::new([keyed(bench, "stops")]))),
            ("needs ready", ready(job()).waiting_for(wait("ready"))),
            ("needs there", ready(job()).waiting_for(or(Cancel, after(&there)))),
            ("runs there", ready(job()).waiting_for(or(Run, after(&there)))),
            ("gives up", ready(job()).waiting_for(gives_up)),
            ("unmet", ready(job()).waiting_for(wait("held"))),
            ("unmet there", ready(job()).waiting_for(after(&there))),
            ("back", ready(job()).waiting_for(or(Cancel, wait("dead")))),
            ("back there", ready(job()).waiting_for(after(&there))),
        ];
        self.submit(bench, 5_000, tasks).await;
        for name in ["unmet", "unmet there", "back", "back there"] {
            bench.at(5_000).cancel(self.id(name)).await.expect("the task is blocked");
        }
        self.bring_back(bench, ["back", "back there"]).await;
        let asks = format!("1 ask {}0 {}", there.stored(), self.id("held biz").stored());
        self.apply(bench, 5_000, vec![asks]).await.expect("it is asked");
    }

    /// Applies effects of the queue `there`.
    async fn apply(&self, bench: &Bench, at: u64, effects: Vec<String>) -> Result<(), BrokerError> {
        let source = QueueName::new("there").expect("a name");
        let outgoing = Outgoing { source, target: bench.queue.clone(), effects };
        bench.at(at).apply(&outgoing).await.map(drop)
    }

    pub(crate) async fn relay_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, held) = (bench.at(NOW), self.id("held biz").stored());
        let (there, waits) = (self.id("needs there").stored(), self.id("runs there").stored());
        match (script, situation) {
            ("apply", "ends here") => {
                let all = broker.outgoing(&bench.queue).await?;
                let own = all.into_iter().find(|one| one.target == bench.queue);
                broker.apply(&own.expect("tasks wait for a dead one")).await.map(drop)
            }
            ("apply", _) => {
                let effects = [
                    format!("2 drop {}0 {held}", self.id("ready").stored()),
                    format!("3 ask {there}1 {held}"),
                    format!("4 ask {there}2 {}", self.id("done").stored()),
                    format!("5 ask {there}3 {}", self.id("dead").stored()),
                    format!("6 ended {there}0 dead"),
                    format!("7 met {waits}0"),
                    format!("8 tie {there}4 {}", self.id("dead").stored()),
                ];
                self.apply(bench, NOW, effects.into()).await
            }
            ("relay", _) => {
                let source = bench.queue.clone();
                let target = QueueName::new("there").expect("a name");
                let outgoing = Outgoing { source, target, effects: Vec::new() };
                let first = (START + 5_000) * 1_024 + 1;
                let last = if situation == "some" { first } else { first + 1_000 };
                broker.relayed(&outgoing, last).await.map(drop)
            }
            ("reask", "of an operation") => {
                let back = ["back", "back there", "unmet"].map(|name| self.id(name));
                broker.reask_of(&bench.queue, back).await.map(drop)
            }
            _ => bench.at(NOW + 10_000).reask(&bench.queue).await.map(drop),
        }
    }

    pub(crate) fn dependants(&self, bench: &Bench) -> Vec<Submission> {
        let there = TaskId::new(QueueName::new("there").expect("a name"));
        let mut gives_up = After::new([keyed(bench, "ready"), Prerequisite::Task(there)]);
        gives_up.give_up_after = Some(DAY);
        let wait = |name| after(self.id(name));
        vec![
            ready(job()).waiting_for(wait("held")),
            ready(job().biz_id("ready")).waiting_for(wait("ready")),
            ready(job().priority(1)).in_lane(lane("h", 1)).waiting_for(wait("dead")),
            ready(job().due(Due::In(DAY))).waiting_for(gives_up),
            ready(job()).waiting_for(wait("done")),
        ]
    }
}
