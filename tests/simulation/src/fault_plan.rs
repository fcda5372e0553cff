//! Decides which faults occur: [`FaultPlan`].

use std::time::Duration;

use crate::exchange_fault::{Fault, Refusal, Silence};

/// One exchange that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The number of exchanges before it, over all processes.
    pub number: u64,
    /// The number of commands in the exchange.
    pub commands: usize,
    /// The number of script calls in the exchange.
    pub scripts: usize,
    /// The first script or command of the exchange.
    pub verb: &'static str,
}

/// The latency of an exchange, to the store and back.
pub type Latency = (Duration, Duration);

/// One ms in each direction.
pub const SHORT: Option<Latency> = Some((Duration::from_millis(1), Duration::from_millis(1)));

/// Decides about the fault and the latency of each exchange.
pub trait FaultPlan: Send {
    /// Returns the fault of this exchange, if there is one.
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault>;

    /// Returns the latency of this exchange. None means no time at all.
    fn latency(&mut self) -> Option<Latency> {
        None
    }
}

/// A plan without faults.
#[derive(Clone, Copy, Debug)]
pub struct Fair;

impl FaultPlan for Fair {
    fn fault(&mut self, _: &Exchange) -> Option<Fault> {
        None
    }
}

/// A plan without faults in which exchanges take up to some ms.
#[derive(Clone, Debug)]
pub struct Calm(fastrand::Rng);

impl Calm {
    /// Returns a plan whose latencies come from this random generator.
    pub fn new(random: fastrand::Rng) -> Self {
        Self(random)
    }
}

impl FaultPlan for Calm {
    fn fault(&mut self, _: &Exchange) -> Option<Fault> {
        None
    }

    fn latency(&mut self) -> Option<Latency> {
        let mut delay = || Duration::from_micros(self.0.u64(50..3_000));
        Some((delay(), delay()))
    }
}

/// A plan with one fault, at one exchange.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    /// The number of the exchange.
    pub at: u64,
    /// The fault of that exchange.
    pub fault: Fault,
}

impl FaultPlan for Once {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        (exchange.number == self.at).then_some(self.fault)
    }

    fn latency(&mut self) -> Option<Latency> {
        SHORT
    }
}

/// A plan in which each exchange that begins with one of these scripts arrives twice.
#[derive(Clone, Copy, Debug)]
pub struct Twice(pub &'static [&'static str]);

impl FaultPlan for Twice {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        self.0.contains(&exchange.verb).then_some(Fault::Doubled)
    }

    fn latency(&mut self) -> Option<Latency> {
        SHORT
    }
}

/// A plan in which no heartbeat arrives, but all other exchanges do.
#[derive(Clone, Copy, Debug)]
pub struct NoHeartbeats;

impl FaultPlan for NoHeartbeats {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        (exchange.verb == "renew").then_some(Fault::RequestLost(Silence::Broken))
    }
}

/// A plan with random faults. Some seeds have more of them.
#[derive(Debug)]
pub struct Rough {
    random: fastrand::Rng,
    /// The number of faults in 1,000 exchanges.
    rate: u32,
    /// The number of processes that may still die.
    deaths: u32,
    lease: Duration,
}

impl Rough {
    /// Returns the plan of that seed.
    pub fn new(seed: u64, lease: Duration) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let rate = [2, 10, 30, 80, 200][random.usize(..5)];
        let deaths = random.u32(..6);
        Self { random, rate, deaths, lease }
    }

    fn silence(&mut self) -> Silence {
        if self.random.u8(..4) == 0 { Silence::Kept } else { Silence::Broken }
    }

    fn ms(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.random.u64(from..to))
    }

    fn dies(&mut self) -> bool {
        let may = self.deaths > 0;
        self.deaths = self.deaths.saturating_sub(1);
        may
    }
}

impl FaultPlan for Rough {
    fn fault(&mut self, exchange: &Exchange) -> Option<Fault> {
        if self.random.u32(..1000) >= self.rate {
            return None;
        }
        let lease_ms = u64::try_from(self.lease.as_millis()).unwrap_or(u64::MAX);
        Some(match self.random.u8(..32) {
            0..5 => Fault::RequestLost(self.silence()),
            5..11 => Fault::ReplyLost(self.silence()),
            11..13 => Fault::Torn { arrive: self.random.usize(..exchange.commands.max(1)) },
            13..17 => Fault::Doubled,
            17..19 => Fault::Delayed(self.ms(1, lease_ms / 2)),
            19 => Fault::Delayed(self.ms(lease_ms, 3 * lease_ms)),
            20..23 => Fault::Late(self.ms(0, 4 * lease_ms)),
            23..31 if exchange.scripts > 0 => {
                let script = self.random.usize(..exchange.scripts);
                let nth = self.random.usize(..24);
                let refusal = if self.random.bool() { Refusal::Passing } else { Refusal::Lasting };
                Fault::CallFails { script, nth, refusal }
            }
            31 if self.random.bool() && self.dies() => Fault::DiesBefore,
            31 if self.dies() => Fault::DiesAfter,
            _ => return None,
        })
    }

    fn latency(&mut self) -> Option<Latency> {
        // Half of the exchanges take no time, so that many events have the same instant.
        if self.random.bool() {
            return None;
        }
        Some((self.ms(0, 3), self.ms(0, 3)))
    }
}
