//! The job that a runner is asked to do.

use std::future::pending;
use std::time::Duration;

use crate::harness::{end_with_input, ready};
use crate::submit::Way;
use crate::{Peer, Result, setting, submit, tally, version};

/// The usage, in one line.
pub(crate) enum Job {
    Submit { count: usize, way: Way },
    Latency { count: usize, every: Duration },
    Work { count: usize },
}

const USAGE: &str = "usage: submit COUNT seq | submit COUNT concurrent CALLERS | \
                     submit COUNT all BATCH | latency COUNT EVERY_MS | worker COUNT";

impl Job {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self> {
        let args: Vec<String> = args.collect();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        Ok(match words[..] {
            ["submit", count, "seq"] => Self::Submit { count: count.parse()?, way: Way::Seq },
            ["submit", count, "concurrent", callers] => {
                let way = Way::Concurrent { callers: callers.parse()? };
                Self::Submit { count: count.parse()?, way }
            }
            ["submit", count, "all", batch] => {
                Self::Submit { count: count.parse()?, way: Way::All { batch: batch.parse()? } }
            }
            ["latency", count, every_ms] => {
                let every = Duration::from_millis(every_ms.parse()?);
                Self::Latency { count: count.parse()?, every }
            }
            ["worker", count] => Self::Work { count: count.parse()? },
            _ => return Err(USAGE.into()),
        })
    }

    pub(crate) async fn run<P: Peer>(self) -> Result {
        let peer = P::connect(&setting("REDIS_URL", String::new())?).await?;
        let version = version::locked(P::PACKAGE).ok_or("the lock file lacks the library")?;
        ready(version)?;
        match self {
            Self::Submit { count, way } => {
                end_with_input(|| ());
                submit::many(peer, count, way).await?;
            }
            Self::Latency { count, every } => {
                end_with_input(|| ());
                submit::paced(peer, count, every).await?;
            }
            Self::Work { count } => {
                tally::start(count);
                return peer.work().await;
            }
        }
        // The end of the input ends the process.
        pending().await
    }
}
