//! How long a relay waits for the next call: [`Pace`].

use std::time::Duration;

use tokio::time::Instant;

use crate::duty::Duty;

/// How often a relay looks shortly after it had work.
const AWAKE: Duration = Duration::from_millis(5);
/// How long it looks so often.
const AWAKE_FOR: Duration = Duration::from_secs(1);
/// How often it looks at least.
const ASLEEP: Duration = Duration::from_secs(1);
/// How often a relay looks at least while another one is on duty.
const OFF_DUTY: Duration = Duration::from_secs(2);
/// How often a relay looks whether the one that works goes on.
const STANDBY: Duration = Duration::from_millis(250);
/// The same for a relay while another one is on duty.
const STANDBY_OFF_DUTY: Duration = Duration::from_secs(1);
/// The first wait after a failure.
const AGAIN: Duration = Duration::from_millis(20);

/// The waits of a relay.
#[derive(Debug)]
pub(crate) struct Pace {
    awake_since: Instant,
    duty: Duty,
    wait: Duration,
    failures: u32,
}

impl Pace {
    pub(crate) fn new(duty: Duty) -> Self {
        Self { awake_since: Instant::now(), duty, wait: AWAKE, failures: 0 }
    }

    /// Notes that there is work, or will be soon.
    pub(crate) fn wake(&mut self) {
        self.awake_since = Instant::now();
        (self.wait, self.failures) = (AWAKE, 0);
    }

    /// Returns how long to wait if there was nothing to do.
    pub(crate) fn idle(&mut self) -> Duration {
        self.failures = 0;
        if self.awake_since.elapsed() < AWAKE_FOR {
            return AWAKE;
        }
        let longest = if self.duty.is_on() { ASLEEP } else { OFF_DUTY };
        self.wait = (self.wait * 2).min(longest);
        self.wait
    }

    /// Returns how long to wait while another relay works.
    pub(crate) fn standby(&self) -> Duration {
        if self.duty.is_on() { STANDBY } else { STANDBY_OFF_DUTY }
    }

    /// Returns how long to wait after a failure.
    pub(crate) fn failed(&mut self) -> Duration {
        let wait = AGAIN * 2_u32.pow(self.failures.min(8));
        self.failures += 1;
        wait.min(ASLEEP).mul_f64(0.5 + fastrand::f64() / 2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duty::Rank;

    #[tokio::test(start_paused = true)]
    async fn a_relay_looks_often_after_work_and_seldom_later() {
        let mut pace = Pace::new(Duty::default());
        assert_eq!(pace.idle(), AWAKE);
        tokio::time::advance(AWAKE_FOR).await;
        let mut last = AWAKE;
        for _ in 0..20 {
            let wait = pace.idle();
            assert!(wait > last || wait == ASLEEP, "{wait:?}");
            last = wait;
        }
        assert_eq!(last, ASLEEP);
        pace.wake();
        assert_eq!(pace.idle(), AWAKE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_off_duty_looks_less_often() {
        let duty = Duty::default();
        let mut pace = Pace::new(duty.clone());
        tokio::time::advance(AWAKE_FOR).await;
        duty.set(Rank::Off);
        assert_eq!((0..20).map(|_| pace.idle()).max(), Some(OFF_DUTY));
        assert_eq!(pace.standby(), STANDBY_OFF_DUTY);
        duty.set(Rank::On);
        assert_eq!((pace.idle(), pace.standby()), (ASLEEP, STANDBY));
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_that_fails_waits_longer_up_to_a_second() {
        let mut pace = Pace::new(Duty::default());
        assert!(pace.failed() <= AGAIN);
        let waits: Vec<Duration> = (0..20).map(|_| pace.failed()).collect();
        assert!(waits.iter().all(|wait| *wait <= ASLEEP));
        assert!(*waits.last().unwrap() >= ASLEEP / 2);
    }
}
