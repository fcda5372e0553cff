//! Limits: rates by Redis' time, permits, pauses, and permits outside tasks.

use std::collections::BTreeMap;

use optimus_core::{Limit, TaskId, broker::Acquired};

use super::reference::{Departure, Place, Task, World};

/// The gates of a queue.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    /// What was set at run time.
    pub(crate) set: BTreeMap<String, Limit>,
    /// Until when gates are shut; [`PAUSED`] until they are resumed.
    pub(crate) shut: BTreeMap<String, u64>,
    spent: BTreeMap<String, Spent>,
    pub(crate) loans: Vec<Loan>,
}

/// When a gate has all its tokens again, in µs, as far as the model knows: a claim that looks at a
/// gate after its rate was raised brings that time forward, and not each claim does.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    earliest: u64,
    latest: u64,
}

/// A permit outside tasks.
#[derive(Debug, Clone)]
pub(crate) struct Loan {
    pub(crate) gate: String,
    pub(crate) permit: String,
    pub(crate) until: u64,
    /// Whether it counts: the gate had a number of permits.
    counts: bool,
}

/// The end of a pause.
pub(crate) const PAUSED: u64 = u64::MAX;

/// A gate on the way of a task.
#[derive(Debug)]
struct Way {
    gate: String,
    limit: Limit,
    /// How many tokens the task takes: the burst at most.
    cost: u32,
}

impl Way {
    /// In how many µs the gate gets as many tokens as the task takes.
    fn cost_us(&self) -> u64 {
        u64::from(self.cost) * self.interval_us()
    }

    fn interval_us(&self) -> u64 {
        self.limit.rate_limit().map_or(0, |rate| rate.interval_us())
    }

    fn most(&self) -> Option<usize> {
        self.limit.max_working_limit().map(|most| most as usize)
    }
}

impl World {
    fn way(&self, queue: usize, gate: String, brought: Option<Limit>, cost: u32) -> Way {
        let limit = self.gates[queue].set.get(&gate).copied().or(brought).unwrap_or_default();
        Way { gate, limit, cost: cost.min(limit.burst_limit()) }
    }

    /// The gates of a task: that of the queue, that of its name, and those that it names.
    fn ways(&self, task: &Task) -> Vec<Way> {
        let brought = task.limits.iter().map(|one| (one.gate.stored(), Some(one.limit)));
        let all = [(String::new(), None), ("task:job".to_owned(), None)].into_iter().chain(brought);
        all.map(|(gate, limit)| self.way(task.queue, gate, limit, task.cost)).collect()
    }

    /// How many permits of a gate are taken.
    fn busy(&self, queue: usize, gate: &str, now: u64) -> usize {
        let of_queue = self.tasks.values().filter(|task| task.queue == queue);
        let tasks = of_queue.filter(|task| task.permits.iter().any(|name| name == gate)).count();
        tasks + self.loans_of(queue, gate, now).len()
    }

    /// When the permits of a gate that are outside tasks end.
    fn loans_of(&self, queue: usize, gate: &str, now: u64) -> Vec<u64> {
        let loans = self.gates[queue].loans.iter();
        let of_gate = loans.filter(|loan| loan.gate == gate && loan.until > now && loan.counts);
        let mut ends: Vec<u64> = of_gate.map(|loan| loan.until).collect();
        ends.sort_unstable();
        ends
    }

    fn full_at(&self, queue: usize, way: &Way, now: u64) -> Spent {
        let burst_us = u64::from(way.limit.burst_limit()) * way.interval_us();
        let spent = self.gates[queue].spent.get(&way.gate).copied().unwrap_or_default();
        let within = |at: u64| at.min(now * 1_000 + burst_us).max(now * 1_000);
        Spent { earliest: within(spent.earliest), latest: within(spent.latest) }
    }

    /// Returns when a gate may let one through, first at best and then for sure; `None` if another
    /// call must come first.
    fn opens(&self, queue: usize, way: &Way, now: u64) -> Option<(u64, u64)> {
        let mut at = self.gates[queue].shut.get(&way.gate).copied().unwrap_or(0);
        if at == PAUSED {
            return None;
        }
        if let Some(most) = way.most() {
            let busy = self.busy(queue, &way.gate, now);
            if busy >= most {
                let ends = self.loans_of(queue, &way.gate, now);
                at = at.max(*ends.get(busy - most)?);
            }
        }
        let (earliest, latest) = self.tokens_at(queue, way, now);
        Some((at.max(earliest), at.max(latest)))
    }

    /// Returns when a gate has as many tokens as a task takes, first at best and then for sure.
    fn tokens_at(&self, queue: usize, way: &Way, now: u64) -> (u64, u64) {
        if way.interval_us() == 0 {
            return (0, 0);
        }
        let spent = self.full_at(queue, way, now);
        let most_away = u64::from(way.limit.burst_limit() - way.cost) * way.interval_us();
        let token = |full_at: u64| full_at.saturating_sub(most_away).div_ceil(1_000);
        (token(spent.earliest), token(spent.latest))
    }

    /// Returns when the limits of a task surely let it start; `None` if another call must come
    /// first.
    pub(crate) fn opens_at(&self, now: u64, task: &Task) -> Option<u64> {
        let opens = self.ways(task).into_iter().map(|way| self.opens(task.queue, &way, now));
        opens.map(|at| at.map(|(_, surely)| surely)).try_fold(0, |last, at| Some(last.max(at?)))
    }

    /// As [`World::opens_at`], once the tasks have started for which a gate may keep its tokens.
    pub(crate) fn kept_until(&self, now: u64, id: &TaskId) -> Option<u64> {
        let task = &self.tasks[id];
        let rated = self.ways(task).into_iter().filter(|way| way.interval_us() > 0);
        let gates: Vec<String> = rated.map(|way| way.gate).collect();
        let may_come_first = |other: &&Task| {
            let is_due = matches!(other.place, Place::Waits(due) if due <= now);
            is_due && other.queue == task.queue && other.cost > 1
        };
        let others = self.tasks.values().filter(may_come_first);
        let kept = others.flat_map(|other| {
            let shared = self.ways(other).into_iter().filter(|way| gates.contains(&way.gate));
            shared.map(|way| self.tokens_at(other.queue, &way, now).1)
        });
        let opens = self.opens_at(now, task)?;
        Some(kept.max().unwrap_or(0).max(opens))
    }

    /// A task starts: takes its tokens. Returns the gates of which it has permits.
    pub(crate) fn pass(&mut self, now: u64, id: &TaskId) -> Result<Vec<String>, Departure> {
        let task = &self.tasks[id];
        let (queue, ways) = (task.queue, self.ways(task));
        for way in &ways {
            match self.opens(queue, way, now) {
                Some((at, _)) if at <= now => {}
                opens => return Err(format!("at {now} past {way:?}, which opens at {opens:?}")),
            }
        }
        for way in &ways {
            self.spend(queue, way, now);
        }
        let with_permits = ways.into_iter().filter(|way| way.most().is_some());
        Ok(with_permits.map(|way| way.gate).collect())
    }

    fn spend(&mut self, queue: usize, way: &Way, now: u64) {
        let cost = way.cost_us();
        if cost > 0 {
            let Spent { earliest, latest } = self.full_at(queue, way, now);
            let spent = Spent { earliest: earliest + cost, latest: latest + cost };
            self.gates[queue].spent.insert(way.gate.clone(), spent);
        }
    }

    /// A worker gives a task back that has not begun: its tokens come back. Those of a call that
    /// gathers may be spent.
    pub(crate) fn refund(&mut self, now: u64, id: &TaskId) {
        let task = &self.tasks[id];
        let (queue, is_sure) = (task.queue, task.gather.is_none());
        for way in self.ways(task) {
            self.look_at(queue, &way, now);
            if let Some(spent) = self.gates[queue].spent.get_mut(&way.gate) {
                let cost = way.cost_us();
                spent.earliest = spent.earliest.saturating_sub(cost);
                spent.latest = spent.latest.saturating_sub(if is_sure { cost } else { 0 });
            }
        }
    }

    /// A call or a claim has looked at the gates of a queue, and may have brought forward when they
    /// have all their tokens.
    pub(crate) fn look_at_gates(&mut self, queue: usize, now: u64, known: &[TaskId]) {
        for id in known {
            for way in self.ways(&self.tasks[id]) {
                self.look_at(queue, &way, now);
            }
        }
    }

    fn look_at(&mut self, queue: usize, way: &Way, now: u64) {
        let earliest = self.full_at(queue, way, now).earliest;
        if let Some(spent) = self.gates[queue].spent.get_mut(&way.gate) {
            spent.earliest = spent.earliest.min(earliest);
        }
    }

    /// Somebody asks for a permit outside tasks.
    pub(crate) fn acquired(
        &mut self,
        now: u64,
        (queue, gate, permit): (usize, &str, &str),
        until: u64,
        answer: Acquired,
    ) -> Result<(), Departure> {
        let way = self.way(queue, gate.to_owned(), None, 1);
        let opens = self.opens(queue, &way, now);
        self.look_at(queue, &way, now);
        match (answer, opens) {
            (Acquired::Granted, Some((at, _))) if at <= now => {}
            (Acquired::Wait(_), opens) if opens.is_none_or(|(_, surely)| surely > now) => {
                return Ok(());
            }
            _ => return Err(format!("{answer:?} at {now} of {way:?}, which opens at {opens:?}")),
        }
        self.spend(queue, &way, now);
        let (gate, permit, counts) = (gate.to_owned(), permit.to_owned(), way.most().is_some());
        self.gates[queue].loans.push(Loan { gate, permit, until, counts });
        Ok(())
    }

    /// A report shuts a gate of a task.
    pub(crate) fn shut(&mut self, queue: usize, gate: String, until: u64) {
        let shut = self.gates[queue].shut.entry(gate).or_insert(0);
        *shut = until.max(*shut);
    }
}
