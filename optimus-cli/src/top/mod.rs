//! The live view of `optimus top`: [`watch`].
//!
//! `reader` reads Redis and makes what is [`Seen`]; `view` is what the operator has chosen, by
//! keys; `table` makes rows of both, and `draw` draws them on the `screen`.

mod draw;
mod failure_table;
mod number;
mod place;
mod process_table;
mod queue_table;
mod rates;
mod reader;
mod screen;
mod seen;
mod table;
#[cfg(test)]
mod tests;
mod view;

use std::{sync::Arc, time::Duration};

use optimus_core::QueueName;
use tokio::sync::watch;

use self::{
    reader::Reader,
    screen::Screen,
    view::{Page, View},
};
use crate::{failure::Failure, session::Session, signals::asked_to_end};

/// How often the age of what is shown is drawn again.
const REDRAW_EVERY: Duration = Duration::from_secs(1);

/// Shows these queues, or all, until the operator leaves.
pub(crate) async fn watch(
    session: &Session<'_>,
    queues: Vec<QueueName>,
    every: Duration,
) -> Result<(), Failure> {
    let mut reader = Reader::new(session, queues, every);
    // If Redis can't be used, it is said before the screen is cleared.
    let first = reader.read(Page::Queues).await?;
    let (seen, mut news) = watch::channel(Arc::new(first));
    let (page, shown) = watch::channel(Page::Queues);
    let reading = tokio::spawn(reader.run(shown, seen));
    let mut screen = Screen::open()?;
    let mut view = View::new(session.out.has_colors().into());
    let mut redraw = tokio::time::interval(REDRAW_EVERY);
    let ended = asked_to_end();
    tokio::pin!(ended);
    loop {
        let shown = news.borrow_and_update().clone();
        screen.draw(|frame| draw::draw(frame, &mut view, &shown))?;
        tokio::select! {
            () = &mut ended => break,
            event = screen.next() => match event {
                Some(event) if view.hear(&event) => {}
                _ => break,
            },
            changed = news.changed() => if changed.is_err() {
                // Its panic has given the terminal back already.
                return Err(Failure::new("the part that reads Redis has ended"));
            },
            _ = redraw.tick() => {}
        }
        // The reader is woken only if the causes of deaths are to be read, or no longer.
        page.send_if_modified(|page| {
            let before = std::mem::replace(page, view.page());
            (before == Page::Failures) != (*page == Page::Failures)
        });
    }
    reading.abort();
    Ok(())
}
