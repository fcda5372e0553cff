//! Acts on the processes of workers and clients.

use std::ops::Range;

use optimus_testkit::history::{What, now_ns};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::Nemesis;
use crate::processes::{Who, leave};

impl Nemesis {
    pub(super) fn kill_worker(&mut self) -> anyhow::Result<u64> {
        let mut processes = self.environment.processes();
        let victim = Who::Worker(self.random.usize(..processes.workers()));
        let killed = processes.kill(victim, &self.environment.log)?;
        processes.tend()?;
        Ok(u64::from(killed))
    }

    pub(super) fn kill_client(&mut self) -> anyhow::Result<u64> {
        let mut processes = self.environment.processes();
        let victim = Who::Client(self.random.usize(..processes.clients()));
        let killed = processes.kill(victim, &self.environment.log)?;
        processes.tend()?;
        Ok(u64::from(killed))
    }

    pub(super) async fn replace_worker(&mut self) -> anyhow::Result<u64> {
        let asked = now_ns();
        let dismissed = {
            let mut processes = self.environment.processes();
            let victim = Who::Worker(self.random.usize(..processes.workers()));
            let dismissed = processes.dismiss(victim);
            processes.tend()?;
            dismissed
        };
        let Some(worker) = dismissed else { return Ok(0) };
        let environment = self.environment.clone();
        spawn_blocking(move || leave(worker, asked, &environment.log)).await??;
        Ok(1)
    }

    /// Stops half of the workers for this many leases.
    pub(super) async fn freeze(&mut self, leases: Range<f64>) -> anyhow::Result<u64> {
        let lasting = self.leases(leases);
        let mut victims = Vec::new();
        {
            let processes = self.environment.processes();
            let workers = processes.workers();
            let mut all: Vec<usize> = (0..workers).collect();
            self.random.shuffle(&mut all);
            for victim in all.into_iter().take(workers / 2).map(Who::Worker) {
                let since = now_ns();
                if let Some(pid) = processes.pid(victim)
                    && processes.signal(victim, pid, "STOP")
                {
                    victims.push((victim, pid, since));
                }
            }
        }
        sleep(lasting).await;
        for (victim, pid, since) in &victims {
            // The process may have been killed in the meantime.
            self.environment.processes().signal(*victim, *pid, "CONT");
            self.environment.log.write(What::Frozen { victim: *pid, since: *since });
        }
        Ok(victims.len() as u64)
    }
}
