//! The terminal, which is as it was once this is dropped: [`Screen`].

use std::{io, thread};

use ratatui::{
    DefaultTerminal, Frame,
    crossterm::event::{self, Event},
};
use tokio::sync::mpsc;

/// How many keys may wait until they are heard.
const EVENTS_MAX: usize = 64;

/// A terminal that shows one page and no lines before it. A panic restores it, too.
pub(super) struct Screen {
    terminal: DefaultTerminal,
    events: mpsc::Receiver<Event>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        // The terminal is left as it was if only a part of this works.
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore())?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let screen = Self { terminal, events };
        // It waits for a key until the program ends, or until the terminal has gone.
        thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while let Ok(event) = event::read() {
                if sender.blocking_send(event).is_err() {
                    return;
                }
            }
        })?;
        Ok(screen)
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.terminal.draw(draw).map(drop)
    }

    /// Waits for a key or a change of the size; `None` if the terminal has gone.
    pub(super) async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}
