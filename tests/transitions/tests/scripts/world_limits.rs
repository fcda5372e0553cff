//! The part of the world that has limits, and the calls that change limits.

use std::num::NonZeroU16;

use optimus_core::{
    Limit,
    broker::{Acquired, BrokerError},
};

use crate::{
    acts::{Grants, LEASE, ms},
    after::after,
    bench::Bench,
    jobs::{job, job_of, ready},
    lanes::lane,
    limits::{at_most, named, one_in_10_s},
    world::{NOW, World},
};

impl World {
    /// Fills the store for a situation.
    pub(crate) async fn build_for(bench: &Bench, situation: &str) -> Self {
        if situation.starts_with("roster") {
            return Self::with_roster(bench, situation).await;
        }
        let mut world = Self::build(bench).await;
        if situation.starts_with("limited") {
            world.limit_some(bench).await;
        } else if situation.starts_with("resized") {
            for (key, width) in [("wide", 1), ("line", 2)] {
                let (broker, width) = (bench.at(5_000), NonZeroU16::new(width));
                broker.resize(&bench.queue, key, width).await.expect("no newer program");
            }
        }
        if situation.starts_with("dispensed") {
            world.dispense_some(bench).await;
        }
        if situation.starts_with("ranked lane") {
            let of_lane = || ready(job().priority(1)).in_lane(lane("ranked", 1));
            let tasks = vec![("ranked offered", of_lane()), ("ranked waits", of_lane())];
            world.submit(bench, 5_000, tasks).await;
        } else if situation.starts_with("hands on") {
            world.hand_on(bench).await;
        }
        if situation.starts_with("gathered") {
            world.gather_some(bench).await;
        } else if situation.starts_with("scheduled") {
            world.schedule_some(bench).await;
        } else if situation.starts_with("kept") {
            world.keep_some(bench, situation).await;
        }
        world
    }

    /// Adds tasks with limits, two that are held and two that wait, and a permit outside tasks.
    pub(crate) async fn limit_some(&mut self, bench: &Bench) {
        let (most, rate) = (at_most("m", 1), one_in_10_s("r"));
        let tasks = vec![
            ("m1", ready(job().priority(100)).limited_by(vec![most.clone()])),
            ("m2", ready(job().priority(99)).limited_by(vec![most])),
            ("r1", ready(job().priority(98)).limited_by(vec![rate.clone()])),
            ("r2", ready(job().priority(97)).limited_by(vec![rate])),
            ("filler", ready(job().priority(96))),
        ];
        self.submit(bench, 5_000, tasks).await;
        let claimed = bench.claim(5_000, &self.busy, 3, 3).await;
        assert_eq!(claimed.ids(), ["m1", "r1", "filler"].map(|name| self.id(name).clone()));
        self.held.extend(claimed.leases(&self.busy));
        let (gate, limit) = (named("x"), Limit::new().max_working(1));
        bench.at(5_000).set_limit(&bench.queue, &gate, Some(&limit)).await.unwrap();
        let lent = bench.at(5_000).acquire(&bench.queue, &gate, 1, "lent", ms(600_000)).await;
        assert_eq!(lent.unwrap(), Acquired::Granted);
    }

    /// Adds a held task with large arguments, whose result another task takes.
    async fn hand_on(&mut self, bench: &Bench) {
        let large = format!("\"{}\"", "x".repeat(20_000));
        let source = ready(job_of(large).priority(100));
        let takes = ready(job_of("\"7\"")).waiting_for(after(source.id()).taking("]"));
        self.submit(bench, 5_000, vec![("hands on", source), ("takes", takes)]).await;
        let claimed = bench.claim(5_000, &self.busy, 3, 1).await;
        assert_eq!(claimed.ids(), std::slice::from_ref(self.id("hands on")));
        self.held.extend(claimed.leases(&self.busy));
    }

    /// Calls a script that changes a gate or a lane, or that pauses the queue.
    pub(crate) async fn limit_in(
        &self,
        bench: &Bench,
        script: &str,
        situation: &str,
    ) -> Result<(), BrokerError> {
        let (broker, queue) = (bench.at(NOW), &bench.queue);
        match script {
            "resize" => {
                let (key, width) = match situation {
                    "wider" => ("line", 2),
                    "narrower" => ("wide", 1),
                    _ => ("wide", 0),
                };
                broker.resize(queue, key, NonZeroU16::new(width)).await.map(drop)
            }
            "pause" if situation == "limited on" => {
                broker.pause_gate(queue, &named("r"), "me", "tests").await.map(drop)
            }
            "pause" if situation == "limited off" => {
                broker.resume_gate(queue, &named("m")).await.map(drop)
            }
            "limit" if situation == "limited unset" => {
                broker.set_limit(queue, &named("x"), None).await
            }
            "limit" => {
                let limit = Limit::new().max_working(2);
                broker.set_limit(queue, &named("m"), Some(&limit)).await
            }
            "acquire" => {
                let gate = named(if situation == "limited, refused" { "x" } else { "m" });
                broker.acquire(queue, &gate, 1, "another", LEASE).await.map(drop)
            }
            "repay" if situation == "limited, back" => {
                broker.give_back(queue, &named("x"), "lent").await
            }
            "repay" => broker.renew_permit(queue, &named("x"), "lent", LEASE).await.map(drop),
            "pause" if situation == "on" => broker.pause(queue).await.map(drop),
            _ => broker.resume(queue).await.map(drop),
        }
    }
}
