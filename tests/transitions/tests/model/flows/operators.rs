//! What operators do to tasks and gates, and programs that ask for permits.

use optimus_core::{
    Gate, Limit, Rate, TaskId, TaskState,
    broker::{Cancelled, Deleted},
};

use super::{
    limits::PAUSED,
    reference::{Departure, Place},
    run::FlowRun,
    step::Step,
};

/// The gates on which operators act, and for which programs ask.
fn gate_of(at: usize) -> Gate {
    match at {
        0 => Gate::Named("a".into()),
        1 => Gate::Named("b".into()),
        2 => Gate::Task("job".into()),
        _ => Gate::Named("c".into()),
    }
}

fn limit_of(at: usize) -> Limit {
    match at {
        0 => Limit::new().rate(Rate::per_second(2)),
        1 => Limit::new().rate(Rate::per_second(20)).burst(4),
        2 => Limit::new().max_working(1),
        _ => Limit::new().max_working(3).rate(Rate::per_second(5)).burst(2),
    }
}

impl FlowRun<'_> {
    pub(crate) async fn operate(&mut self, step: &Step, at: usize) -> Result<(), Departure> {
        let Some(id) = self.aimed(step, at) else { return Ok(()) };
        match step {
            Step::Cancel { .. } => self.cancel(&id).await,
            // A relay may have cancelled the task already.
            _ if self.world.may_be_cancelled(&id) => Ok(()),
            Step::Requeue { .. } => self.requeue(&id).await,
            _ => self.delete(&id).await,
        }
    }

    /// The task of a step: one that has ended for a requeue, else mostly one of the last.
    fn aimed(&self, step: &Step, at: usize) -> Option<TaskId> {
        let ended =
            |id: &&TaskId| matches!(self.world.tasks[*id].place, Place::Dead | Place::Cancelled);
        let order = &self.world.order;
        let among: Vec<&TaskId> = match step {
            Step::Requeue { .. } => order.iter().filter(ended).collect(),
            _ => order.iter().rev().take(16).collect(),
        };
        among.get(at % among.len().max(1)).map(|id| (*id).clone())
    }

    async fn cancel(&mut self, id: &TaskId) -> Result<(), Departure> {
        let place = self.world.tasks[id].place.clone();
        let broker = self.benches[self.world.tasks[id].queue].at(self.now);
        let answer = broker.cancel(id).await.expect("a cancel is answered");
        let expected = match place {
            Place::Waits(_) | Place::Cancelled => Cancelled::Done,
            Place::Working(_) => Cancelled::Requested,
            Place::Dead => Cancelled::Ended(TaskState::Dead),
            Place::Gone => answer,
        };
        if answer != expected {
            return Err(format!("the cancel of {id} answers {answer:?}"));
        }
        match place {
            Place::Waits(_) => {
                self.world.free_key(id);
                self.end(id, Place::Cancelled);
            }
            Place::Working(_) => self.world.task(id).stop_asked = true,
            _ => {}
        }
        Ok(())
    }

    async fn requeue(&mut self, id: &TaskId) -> Result<(), Departure> {
        if !matches!(self.world.tasks[id].place, Place::Dead | Place::Cancelled) {
            return Ok(());
        }
        let broker = self.benches[self.world.tasks[id].queue].at(self.now);
        broker.requeue(id).await.map_err(|problem| format!("a requeue fails: {problem:?}"))?;
        self.world.leave_worker(id, Place::Waits(self.now));
        let task = self.world.task(id);
        (task.failures, task.losses) = (0, 0);
        if let Some(wait) = &mut task.waits_for {
            wait.is_told = false;
        }
        Ok(())
    }

    async fn delete(&mut self, id: &TaskId) -> Result<(), Departure> {
        let (place, queue) = (self.world.tasks[id].place.clone(), self.world.tasks[id].queue);
        let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
        let answer = broker.delete_all(name, &[id]).await.expect("a delete is answered");
        if answer == [Deleted::Done] {
            self.world.free_key(id);
            self.world.leave_worker(id, Place::Gone);
            self.world.count(id, TaskState::Forgotten);
        } else if !matches!(place, Place::Working(_) | Place::Gone) {
            return Err(format!("the delete of {id} in {place:?} answers {answer:?}"));
        }
        Ok(())
    }

    pub(crate) async fn act_on_gates(&mut self, step: &Step) -> Result<(), Departure> {
        match *step {
            Step::Limit { queue, gate, limit } => self.set_limit(queue, gate, limit).await,
            Step::Pause { queue, gate } => {
                let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
                let gate = gate_of(gate);
                broker.pause_gate(name, &gate, "me", "why").await.expect("a pause is answered");
                self.world.shut(queue, gate.stored(), PAUSED);
                Ok(())
            }
            Step::Resume { queue, gate } => {
                let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
                let gate = gate_of(gate);
                broker.resume_gate(name, &gate).await.expect("a resume is answered");
                self.world.gates[queue].shut.remove(&gate.stored());
                Ok(())
            }
            Step::Acquire { queue, gate, lease_ms } => self.acquire(queue, gate, lease_ms).await,
            Step::GiveBack { queue, loan } => self.give_back(queue, loan).await,
            _ => Ok(()),
        }
    }

    async fn set_limit(
        &mut self,
        queue: usize,
        gate: usize,
        limit: Option<usize>,
    ) -> Result<(), Departure> {
        let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
        let (gate, limit) = (gate_of(gate), limit.map(limit_of));
        broker.set_limit(name, &gate, limit.as_ref()).await.expect("a limit is answered");
        let set = &mut self.world.gates[queue].set;
        match limit {
            Some(limit) => drop(set.insert(gate.stored(), limit)),
            None => drop(set.remove(&gate.stored())),
        }
        Ok(())
    }

    async fn acquire(&mut self, queue: usize, gate: usize, lease: u64) -> Result<(), Departure> {
        let permit = self.new_id(queue).stored();
        let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
        let gate = gate_of(gate);
        let answer = broker.acquire(name, &gate, 1, &permit, Self::wait(lease)).await;
        let answer = answer.expect("a program that asks for a permit is answered");
        self.note(|| format!("         {answer:?}"));
        let at = (queue, &*gate.stored(), &*permit);
        self.world.acquired(self.now, at, self.now + lease, answer)
    }

    async fn give_back(&mut self, queue: usize, loan: usize) -> Result<(), Departure> {
        let (broker, name) = (self.benches[queue].at(self.now), &self.benches[queue].queue);
        let loans = &mut self.world.gates[queue].loans;
        if !loans.is_empty() {
            let loan = loans.remove(loan % loans.len());
            let gate = Gate::from_stored(&loan.gate).expect("a gate");
            broker.give_back(name, &gate, &loan.permit).await.expect("it is answered");
        }
        Ok(())
    }
}
