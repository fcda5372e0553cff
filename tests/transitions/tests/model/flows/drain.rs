//! The end of a run: once nothing is paused, all tasks end, and no key of theirs is left.

use super::{
    limits::PAUSED,
    reference::{Departure, Place},
    run::{FlowRun, WORKERS},
    step::Step,
};

/// How often workers claim at most.
const TURNS_MAX: usize = 400;
/// After so many turns, what still waits for a group waits for one that nothing ends.
const TURNS_UNTIL_DISBANDED: usize = 60;
const STEP_MS: u64 = 400;
/// So many claims more than there are tasks may find nothing, one after the other.
const SPARE_CLAIMS: usize = 20;

impl FlowRun<'_> {
    /// Resumes everything, and works until no task is left.
    pub(crate) async fn drain(&mut self) -> Result<(), Departure> {
        self.note(|| "drain".into());
        for queue in 0..2 {
            for gate in 0..4 {
                self.act_on_gates(&Step::Resume { queue, gate }).await?;
                self.act_on_gates(&Step::Limit { queue, gate, limit: None }).await?;
            }
            while !self.world.gates[queue].loans.is_empty() {
                self.act_on_gates(&Step::GiveBack { queue, loan: 0 }).await?;
            }
        }
        for turn in 0..TURNS_MAX {
            if self.live().is_empty() {
                self.relay().await?;
                self.compare().await?;
                return self.assert_nothing_left().await;
            }
            if turn == TURNS_UNTIL_DISBANDED {
                for group in 0..self.world.groups.len() {
                    self.disband(group).await?;
                }
            }
            self.turn(turn).await?;
        }
        let waits = self.live();
        let shut = self.world.gates.iter().any(|gates| gates.shut.values().any(|at| *at == PAUSED));
        Err(format!("{waits:?} never start; paused: {shut}"))
    }

    /// Repeats a claim, each time a little later, as long as it grants nothing and says that work
    /// is left.
    async fn claim_until_an_answer(&mut self, claim: &Step) -> Result<(), Departure> {
        let most = self.world.tasks.len() + SPARE_CLAIMS;
        for _ in 0..most {
            self.apply(claim).await?;
            if !self.has_found_nothing {
                return Ok(());
            }
            self.pass_time(1).await?;
        }
        Err(format!("{most} claims grant nothing, and say that work is left"))
    }

    /// All workers claim, collect and report. Then time passes.
    async fn turn(&mut self, turn: usize) -> Result<(), Departure> {
        self.relay().await?;
        for queue in 0..2 {
            for worker in 0..WORKERS {
                let claim = Step::Claim { queue, worker, want: [1, 2, 128][turn % 3] };
                self.note(|| format!("turn {turn}: {claim:?}"));
                self.claim_until_an_answer(&claim).await?;
                self.apply(&Step::Collect { queue, worker, want: 128 }).await?;
                let id = self.workers[queue][worker].id.clone();
                let held = self.held_in(queue, &id);
                self.complete(queue, held).await?;
            }
        }
        self.compare().await?;
        let is_waiting =
            self.live().iter().any(|id| matches!(self.world.tasks[id].place, Place::Waits(_)));
        if is_waiting { self.pass_time(STEP_MS).await } else { Ok(()) }
    }
}
