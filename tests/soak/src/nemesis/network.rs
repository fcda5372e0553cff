//! Network faults on the connections of one agent, through its proxy.

use std::time::Duration;

use optimus_testkit::history::{What, now_ns};
use optimus_testkit::{FaultProxy, Way};
use tokio::time::sleep;

use super::Nemesis;

/// The number of requests from which the fault hits a random one.
const REQUESTS: u64 = 6;
/// The number of faults that follow each other, and the time limit of each.
const TIMES: u32 = 15;
const EACH_WITHIN: Duration = Duration::from_millis(50);

impl Nemesis {
    /// Applies one fault to one proxy, and removes it again.
    pub(super) async fn disturb_network(&mut self) -> anyhow::Result<u64> {
        let environment = self.environment.clone();
        let Some((who, proxy)) = self.random.choice(&environment.proxies) else { return Ok(0) };
        let since = now_ns();
        let before = environment.processes().pid(*who);
        self.disturb(proxy).await;
        proxy.pass();
        let mut struck = vec![before, environment.processes().pid(*who)];
        struck.dedup();
        for pid in struck.into_iter().flatten() {
            environment.log.write(What::Outage { since, of: Some(pid) });
        }
        Ok(1)
    }

    async fn disturb(&mut self, proxy: &FaultProxy) {
        let way = *self.random.choice(&[Way::Up, Way::Down, Way::Both]).unwrap_or(&Way::Both);
        let mut lasting = self.shortly();
        match self.random.u8(..10) {
            0 => {
                // A silent connection is given up after half a lease.
                proxy.half_open();
                lasting = self.environment.lease / 2;
            }
            1 => proxy.black_hole(way),
            2 => {
                proxy.black_hole(way);
                lasting = self.leases(1.2..2.2);
            }
            3 => proxy.reset(),
            4 => proxy.cut(),
            5 => proxy.slices(),
            6 => proxy.delay(Duration::from_millis(self.random.u64(1..100))),
            7 => return self.strike(proxy, FaultProxy::drop_request).await,
            8 => return self.strike(proxy, FaultProxy::drop_reply).await,
            _ => return self.strike(proxy, FaultProxy::duplicate).await,
        }
        sleep(lasting).await;
    }

    /// Loses or doubles single requests.
    async fn strike(&mut self, proxy: &FaultProxy, arm: fn(&FaultProxy, u64)) {
        for _ in 0..TIMES {
            arm(proxy, self.random.u64(1..=REQUESTS));
            sleep(EACH_WITHIN).await;
        }
    }
}
