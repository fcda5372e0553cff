//! Detects connections on which no bytes move: [`Pulse`], and the stream that updates it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep_until},
};

/// The longest silence, which is longer than any fork or slow script of a healthy server.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(8);
/// Buffers of the system, or of a tunnel, may hold this many bytes that were written and not yet
/// sent. The connection gets the time that a link of [`RATE_MIN`] needs for them.
const HIDDEN_MAX: usize = 8 * 1024 * 1024;
/// The slowest link that is supported, in bytes per second.
const RATE_MIN: usize = 128 * 1024;
/// The longest silence that is allowed, with as many unanswered bytes as count.
pub(super) const PATIENCE_MAX: Duration =
    Duration::from_secs(SILENCE_MAX.as_secs() + (HIDDEN_MAX / RATE_MIN) as u64);

/// When bytes last moved on a connection, and how many are unanswered.
#[derive(Debug)]
pub(super) struct Pulse {
    made: Instant,
    /// When bytes were last read or written, in ms since the pulse was made.
    moved_ms: AtomicU64,
    /// Bytes of requests that have no answer yet.
    unanswered: AtomicUsize,
}

/// Bytes of a request whose answer is awaited, until this value is dropped.
pub(super) struct Awaited<'a>(&'a Pulse, usize);

impl Pulse {
    pub(super) fn new() -> Self {
        let (moved_ms, unanswered) = (AtomicU64::new(0), AtomicUsize::new(0));
        Self { made: Instant::now(), moved_ms, unanswered }
    }

    fn moved(&self) {
        let ms = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(ms, Ordering::Relaxed);
    }

    fn moved_at(&self) -> Instant {
        self.made + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed))
    }

    /// Notes a request of this many bytes.
    pub(super) fn awaits(&self, bytes: usize) -> Awaited<'_> {
        self.unanswered.fetch_add(bytes, Ordering::Relaxed);
        Awaited(self, bytes)
    }

    /// Returns how long the connection may be silent.
    fn patience(&self) -> Duration {
        let hidden = self.unanswered.load(Ordering::Relaxed).min(HIDDEN_MAX);
        SILENCE_MAX + Duration::from_secs(1) * u32::try_from(hidden / RATE_MIN).unwrap_or(u32::MAX)
    }

    /// Waits until the connection has been silent for too long, counted from this call.
    pub(super) async fn stops(&self) {
        let begun = Instant::now();
        loop {
            let (now, quiet_since) = (Instant::now(), self.moved_at().max(begun));
            let until = quiet_since + self.patience();
            if until <= now {
                return;
            }
            // Fewer bytes may be unanswered after this sleep.
            sleep_until(until.min(now + SILENCE_MAX)).await;
        }
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.unanswered.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// A stream that notes when bytes are read or written.
///
/// A write that the system accepts at once does not count: the bytes may stay in a buffer that is
/// never read. A write that had to wait for room counts, because it shows that the other side has
/// read earlier bytes.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
    waits_for_room: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse, waits_for_room: false }
    }

    fn wrote(&mut self, written: &Poll<io::Result<usize>>) {
        if self.waits_for_room && matches!(written, Poll::Ready(Ok(1..))) {
            self.pulse.moved();
        }
        self.waits_for_room = written.is_pending();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        if into.filled().len() > before {
            self.pulse.moved();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
#[path = "pulse_tests.rs"]
mod tests;
