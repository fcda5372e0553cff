//! Completion lists and wakeup lists: the messages that a waiter receives.

use std::time::Duration;

use optimus_core::{
    QueueName, WorkerId,
    broker::{Asked, Woken},
};

use crate::{actors::client_name, run::Run};

/// How long a message that was sent may take to arrive.
const PATIENCE: Duration = Duration::from_secs(5);

impl Run<'_> {
    pub(crate) async fn read_completions(
        &mut self,
        at: usize,
        queue: u8,
        client: u8,
    ) -> Result<(), String> {
        let side = &mut self.sides[usize::from(queue)];
        let completions = &side.reference.completions;
        let mut clients = (0..3).map(|next| client_name((client + next) % 3));
        let name = clients
            .find(|name| completions.get(name).is_some_and(|completions| !completions.is_empty()));
        let Some(name) = name else { return Ok(()) };
        let expected: Vec<_> =
            side.reference.completions.remove(&name).into_iter().flatten().collect();
        let completions =
            self.listener.wait_for_completions(&side.bench.queue, &name, PATIENCE).await;
        self.record(
            at,
            queue.into(),
            &format_args!("{name} reads its completions: {completions:?}"),
        );
        match completions {
            Ok(completions) if completions == expected => {
                self.reach.count("completions are read");
                Ok(())
            }
            other => Err(format!("the completions of {name} is {other:?}, to be {expected:?}")),
        }
    }

    pub(crate) async fn answer_wakeup(
        &mut self,
        at: usize,
        queue: u8,
        pass_on: bool,
    ) -> Result<(), String> {
        let side = &mut self.sides[usize::from(queue)];
        if !side.has_wakeup {
            return Ok(());
        }
        let queues: [QueueName; 1] = [side.bench.queue.clone()];
        let waiter = WorkerId::from_stored("listener");
        let woken = self.listener.wait_for_work(&queues, (&queues[0], &waiter), PATIENCE).await;
        if !matches!(&woken, Ok(Some(Woken::Work(queue))) if *queue == queues[0]) {
            return Err(format!("a wait with a wakeup returns {woken:?}"));
        }
        (side.has_wakeup, side.reference.woken) = (false, true);
        // A token is only a hint, and a full store accepts none from outside.
        if pass_on && !side.reference.full {
            self.listener.wake(&queues[0]).await.map_err(|problem| problem.to_string())?;
            (side.has_wakeup, side.reference.woken) = (true, false);
        }
        self.record(at, queue.into(), &format_args!("the wakeup is taken, passed on: {pass_on}"));
        self.reach.count("a wakeup is taken");
        Ok(())
    }

    pub(crate) async fn read_stop(&mut self, at: usize, queue: u8) -> Result<(), String> {
        let side = &mut self.sides[usize::from(queue)];
        let mut lists =
            side.reference.cancel_wakeups.iter_mut().filter(|(_, list)| !list.is_empty());
        let Some((name, list)) = lists.next() else { return Ok(()) };
        let (name, expected) = (name.clone(), list.pop_front().expect("the list is not empty"));
        let registrations = [(side.bench.queue.clone(), name.clone())];
        let process = (&side.bench.queue, &WorkerId::from_stored("process"));
        let stopped = self.listener.wait_until_asked(&registrations, process, PATIENCE).await;
        self.record(at, queue.into(), &format_args!("{name} is to stop {stopped:?}"));
        match stopped {
            Ok(Some(Asked::Stop(lease))) if lease == expected => {
                self.reach.count("a stop is read");
                Ok(())
            }
            other => Err(format!("{name} is asked to stop {other:?}, to be {expected:?}")),
        }
    }
}
