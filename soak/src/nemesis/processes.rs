//! Acts upon the processes of workers and clients.

use std::ops::Range;

use optimus_testkit::history::{What, now_ns};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Nemesis;
use crate::crew::{Who, leave};

impl Nemesis {
    pub(super) fn kill_worker(&mut self) -> anyhow::Result<u64> {
        let mut crew = self.stage.crew();
        let victim = Who::Worker(self.random.usize(..crew.workers()));
        let killed = crew.kill(victim, &self.stage.log)?;
        crew.tend()?;
        Ok(u64::from(killed))
    }

    pub(super) fn kill_client(&mut self) -> anyhow::Result<u64> {
        let mut crew = self.stage.crew();
        let victim = Who::Client(self.random.usize(..crew.clients()));
        let killed = crew.kill(victim, &self.stage.log)?;
        crew.tend()?;
        Ok(u64::from(killed))
    }

    pub(super) async fn replace_worker(&mut self) -> anyhow::Result<u64> {
        let asked = now_ns();
        let dismissed = {
            let mut crew = self.stage.crew();
            let victim = Who::Worker(self.random.usize(..crew.workers()));
            let dismissed = crew.dismiss(victim);
            crew.tend()?;
            dismissed
        };
        let Some(worker) = dismissed else { return Ok(0) };
        let stage = self.stage.clone();
        spawn_blocking(move || leave(worker, asked, &stage.log)).await??;
        Ok(1)
    }

    /// Stops half of the workers for so many leases.
    pub(super) async fn freeze(&mut self, leases: Range<f64>) -> anyhow::Result<u64> {
        let lasting = self.leases(leases);
        let mut victims = Vec::new();
        {
            let crew = self.stage.crew();
            let workers = crew.workers();
            let mut all: Vec<usize> = (0..workers).collect();
            self.random.shuffle(&mut all);
            for victim in all.into_iter().take(workers / 2).map(Who::Worker) {
                let since = now_ns();
                if let Some(pid) = crew.pid(victim)
                    && crew.signal(victim, pid, "STOP")
                {
                    victims.push((victim, pid, since));
                }
            }
        }
        sleep(lasting).await;
        for (victim, pid, since) in &victims {
            // Meanwhile it may have been killed.
            self.stage.crew().signal(*victim, *pid, "CONT");
            self.stage.log.write(What::Frozen { victim: *pid, since: *since });
        }
        Ok(victims.len() as u64)
    }
}
