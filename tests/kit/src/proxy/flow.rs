//! Controls how bytes pass in each direction: [`Flow`].

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::watch;
use tokio::task::yield_now;
use tokio::time::sleep;

/// The number of writes per second with which a rate is produced.
const RATE_PARTS: usize = 20;

/// One direction, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From clients to the server.
    Up,
    /// From the server to clients.
    Down,
    /// Both directions.
    Both,
}

/// The treatment of the bytes that are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pace {
    #[default]
    Pass,
    Delay(Duration),
    Slices,
    /// A rate in bytes per second, for each connection.
    Rate(usize),
    Hole,
}

/// The pace of each direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    up: Pace,
    down: Pace,
}

impl Flow {
    pub(super) fn set(&mut self, way: Way, pace: Pace) {
        if way != Way::Down {
            self.up = pace;
        }
        if way != Way::Up {
            self.down = pace;
        }
    }

    fn pace(self, way: Way) -> Pace {
        if way == Way::Up { self.up } else { self.down }
    }
}

/// One direction of one connection. It writes at the current pace.
pub(super) struct Paced<W> {
    pub(super) way: Way,
    pub(super) flow: watch::Receiver<Flow>,
    pub(super) writer: W,
}

impl<W: AsyncWrite + Unpin> Paced<W> {
    /// Delivers everything in `bytes`. Afterwards, `bytes` is empty.
    pub(super) async fn deliver(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        match self.next_pace().await? {
            Pace::Slices => {
                for byte in bytes.iter() {
                    self.writer.write_all(&[*byte]).await?;
                    self.writer.flush().await?;
                    yield_now().await;
                }
            }
            Pace::Rate(per_second) => {
                for part in bytes.chunks((per_second / RATE_PARTS).max(1)) {
                    let us = part.len() * 1_000_000 / per_second;
                    sleep(Duration::from_micros(us as u64)).await;
                    self.writer.write_all(part).await?;
                    self.writer.flush().await?;
                }
            }
            pace => {
                if let Pace::Delay(by) = pace {
                    sleep(by).await;
                }
                self.writer.write_all(bytes).await?;
                self.writer.flush().await?;
            }
        }
        bytes.clear();
        Ok(())
    }

    /// Waits until the pace is not a black hole, and returns it.
    async fn next_pace(&mut self) -> io::Result<Pace> {
        let way = self.way;
        let open = self.flow.wait_for(|flow| flow.pace(way) != Pace::Hole).await;
        open.map(|flow| flow.pace(way)).map_err(|_| io::ErrorKind::ConnectionAborted.into())
    }
}
