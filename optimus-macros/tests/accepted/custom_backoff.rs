//! A back-off can be a function's path, with any function name.
#![deny(warnings)]

use std::{error::Error, time::Duration};

use optimus::{Backoff, Task, TaskFn};

mod waits {
    use super::{Duration, Error};

    pub fn minutes(failed: u32, _: &(dyn Error + 'static)) -> Duration {
        Duration::from_secs(60) * failed
    }
}

#[optimus::task(backoff = waits::minutes)]
async fn own() {}

#[optimus::task(backoff = "fixed(wait = 30s, jitter = 0)")]
async fn fixed() {}

#[optimus::task(backoff = "linear")]
async fn linear() {}

fn backoff<A, F: TaskFn<A>>(_: F, n: u32) -> Duration {
    let format = format!("{:?}", F::Task::options());
    assert!(format.contains("backoff"), "{format}");
    let backoff = [
        Backoff::Custom(waits::minutes),
        Backoff::Fixed { wait: Duration::from_secs(30), jitter: 0.0 },
        Backoff::Linear {
            base: Duration::from_secs(10),
            cap: Duration::from_secs(3_600),
            jitter: 0.2,
        },
    ];
    let chosen = backoff
        .into_iter()
        .find(|backoff| {
            let options = optimus::TaskOptions::new().backoff(*backoff);
            format!("{options:?}") == format
        })
        .unwrap();
    chosen.wait(n, &std::fmt::Error, 0.0)
}

pub(super) fn main() {
    assert_eq!(backoff(own, 3), Duration::from_secs(180));
    assert_eq!(backoff(fixed, 3), Duration::from_secs(30));
    assert_eq!(backoff(linear, 3), Duration::from_secs(30));
}
