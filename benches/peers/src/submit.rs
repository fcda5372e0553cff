//! The ways to submit: one after another, many at once, in batches, and at a pace.

use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use crate::clock::now_ns;
use crate::harness::say;
use crate::{Argument, Peer, Result};

/// How the tasks of a run are submitted.
pub(crate) enum Way {
    /// One call after another, each awaited.
    Seq,
    /// This many callers at once, each with one call after another.
    Concurrent { callers: usize },
    /// This many tasks in each call.
    All { batch: usize },
}

/// Submits the tasks `0..count`. Returns how long that took.
pub(crate) async fn many<P: Peer>(mut peer: P, count: usize, way: Way) -> Result {
    let begun = Instant::now();
    match way {
        Way::Seq => {
            for number in 0..count {
                peer.submit(Argument::new(number)).await?;
            }
        }
        Way::Concurrent { callers } => concurrently(peer, count, callers).await?,
        Way::All { batch } => {
            for from in (0..count).step_by(batch) {
                let numbers = from..count.min(from + batch);
                peer.submit_all(numbers.map(Argument::new).collect()).await?;
            }
        }
    }
    done(begun)
}

/// Submits one task each `every`. Returns how long that took.
pub(crate) async fn paced<P: Peer>(mut peer: P, count: usize, every: Duration) -> Result {
    let begun = Instant::now();
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 0..count {
        ticks.tick().await;
        let argument = Argument::new(number);
        peer.submit(Argument { sent_ns: now_ns(), ..argument }).await?;
    }
    done(begun)
}

async fn concurrently<P: Peer>(peer: P, count: usize, callers: usize) -> Result {
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let mut peer = peer.clone();
            let numbers = (caller..count).step_by(callers);
            tokio::spawn(async move {
                for number in numbers {
                    peer.submit(Argument::new(number)).await?;
                }
                Result::Ok(())
            })
        })
        .collect();
    for caller in callers {
        caller.await??;
    }
    Ok(())
}

fn done(begun: Instant) -> Result {
    Ok(say(&format!("done {}", begun.elapsed().as_nanos()))?)
}
