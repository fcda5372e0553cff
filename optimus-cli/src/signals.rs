//! Signals that ask this process to end: [`Signals`].

/// How the process was asked to end.
#[cfg_attr(not(unix), expect(dead_code, reason = "only unix has all of these signals"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Ctrl-C.
    Interrupt,
    /// A terminal was closed.
    Hangup,
    /// A supervisor.
    Terminate,
}

/// Hears signals from when it was made on. If they can't be heard, none comes.
#[cfg(unix)]
pub(crate) struct Signals(Option<[tokio::signal::unix::Signal; 3]>);

#[cfg(unix)]
impl Signals {
    pub(crate) fn hear() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let heard = || {
            Some([
                signal(SignalKind::interrupt()).ok()?,
                signal(SignalKind::terminate()).ok()?,
                signal(SignalKind::hangup()).ok()?,
            ])
        };
        Self(heard())
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Asked {
        let Some([interrupt, terminate, hangup]) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => Asked::Interrupt,
            _ = terminate.recv() => Asked::Terminate,
            _ = hangup.recv() => Asked::Hangup,
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn hear() -> Self {
        Self
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Asked {
        let _ = tokio::signal::ctrl_c().await;
        Asked::Interrupt
    }
}

/// Hears signals from now on. The future waits for the first one.
pub(crate) fn asked_to_end() -> impl Future<Output = ()> {
    let mut signals = Signals::hear();
    async move {
        signals.next().await;
    }
}
