//! Mail and wakeup lists: what is told without being asked for.

use std::time::Duration;

use optimus_core::{QueueName, WorkerId, broker::Woken};

use crate::{actors::client_name, run::Run};

/// How long a hint that is there may take to come.
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
        self.tell(at, queue.into(), &format_args!("{name} reads its completions: {completions:?}"));
        match completions {
            Ok(completions) if completions == expected => {
                self.reach.count("mail is read");
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
        if !side.rings {
            return Ok(());
        }
        let queues: [QueueName; 1] = [side.bench.queue.clone()];
        let waiter = WorkerId::from_stored("listener");
        let rung = self.listener.wait_for_work(&queues, (&queues[0], &waiter), PATIENCE).await;
        if !matches!(&rung, Ok(Some(Woken::Work(queue))) if *queue == queues[0]) {
            return Err(format!("the bell that rings is answered {rung:?}"));
        }
        (side.rings, side.reference.woken) = (false, true);
        // A token is no more than a hint, and a full store takes none from outside.
        if pass_on && !side.reference.full {
            self.listener.ring(&queues[0]).await.map_err(|problem| problem.to_string())?;
            (side.rings, side.reference.woken) = (true, false);
        }
        self.tell(at, queue.into(), &format_args!("the bell is answered, passed on: {pass_on}"));
        self.reach.count("the bell is answered");
        Ok(())
    }

    pub(crate) async fn hear_stop(&mut self, at: usize, queue: u8) -> Result<(), String> {
        let side = &mut self.sides[usize::from(queue)];
        let mut bells =
            side.reference.cancel_wakeups.iter_mut().filter(|(_, bell)| !bell.is_empty());
        let Some((name, bell)) = bells.next() else { return Ok(()) };
        let (name, expected) = (name.clone(), bell.pop_front().expect("it is not empty"));
        let standings = [(side.bench.queue.clone(), name.clone())];
        let heard = self.listener.wait_for_stop(&standings, PATIENCE).await;
        self.tell(at, queue.into(), &format_args!("{name} is to stop {heard:?}"));
        match heard {
            Ok(Some(lease)) if lease == expected => {
                self.reach.count("a stop is heard");
                Ok(())
            }
            other => Err(format!("{name} is asked to stop {other:?}, to be {expected:?}")),
        }
    }
}
