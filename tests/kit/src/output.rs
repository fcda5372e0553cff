//! The lines that a process has printed so far. A test can wait for one of them.

use std::io::{BufRead as _, BufReader, Read};
use std::thread;

use tokio::sync::watch;

/// The lines of both streams. The lines of each stream are in order. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Output {
    lines: watch::Sender<Vec<String>>,
    /// How many streams have not ended.
    open: watch::Sender<usize>,
}

impl Output {
    /// Collects lines from `stream` until its end, on a separate thread, because a process blocks
    /// if its pipe is not read.
    pub(crate) fn collect(&self, stream: impl Read + Send + 'static) {
        let (lines, open) = (self.lines.clone(), self.open.clone());
        open.send_modify(|open| *open += 1);
        thread::spawn(move || {
            for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned();
                lines.send_modify(|lines| lines.push(line));
            }
            open.send_modify(|open| *open -= 1);
        });
    }

    /// Waits until all lines are collected: each stream has ended.
    pub(crate) async fn ended(&self) {
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open == 0).await.expect("this output holds the sender");
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.borrow().clone()
    }

    /// Returns the first line that contains `part`, whether it is already printed or not.
    pub(crate) async fn line_with(&self, part: &str) -> String {
        let has = |lines: &Vec<String>| lines.iter().any(|line| line.contains(part));
        let mut lines = self.lines.subscribe();
        let lines = lines.wait_for(has).await.expect("this output holds the sender");
        lines.iter().find(|line| line.contains(part)).expect("awaited above").clone()
    }
}
