//! Reads of files that may hang: [`Reader`].

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use tokio::sync::oneshot;

/// The content, or why the read failed.
pub(super) type Answer<T> = Shared<BoxFuture<'static, Result<T, String>>>;

/// Reads files on a separate thread, because a file on a network drive or a pipe may hang. The end
/// of the runtime and of the process do not wait for the thread, and there is at most one.
pub(super) struct Reader<T>(Mutex<Option<UnderWay<T>>>);

struct UnderWay<T> {
    /// Expired once the thread has read, also if it panicked.
    thread: Weak<()>,
    answer: Answer<T>,
}

impl<T> Default for Reader<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone + Send + Sync + 'static> Reader<T> {
    /// Returns the answer of the read that is under way, or of a new one.
    pub(super) fn read(
        &self,
        read: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Answer<T> {
        let mut under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(UnderWay { thread, answer }) = &*under_way
            && thread.strong_count() > 0
        {
            return answer.clone();
        }
        let reading = Arc::new(());
        let thread = Arc::downgrade(&reading);
        let (sender, receiver) = oneshot::channel();
        let work = move || {
            let result = read();
            // This comes before the answer, so that a caller that has the answer and asks again
            // starts a new read.
            drop(reading);
            drop(sender.send(result));
        };
        let started = thread::Builder::new().name("optimus-files".into()).spawn(work);
        let answer = async move {
            started.map_err(|problem| format!("no thread to read files: {problem}"))?;
            receiver.await.unwrap_or_else(|_| Err("the thread that reads files panicked".into()))
        };
        let answer = answer.boxed().shared();
        *under_way = Some(UnderWay { thread, answer: answer.clone() });
        answer
    }

    /// Returns whether a read has begun and has not ended.
    pub(super) fn is_reading(&self) -> bool {
        let under_way = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.as_ref().is_some_and(|UnderWay { thread, .. }| thread.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_read_is_shared_while_it_is_under_way_and_never_afterwards() {
        let reader = Reader::default();
        let (open, gate) = mpsc::channel();
        let first = reader.read(move || Ok(gate.recv().unwrap()));
        let shared = reader.read(|| panic!("a second read while one is under way"));
        assert!(reader.is_reading());
        open.send("one").unwrap();
        assert_eq!(first.await, Ok("one"));
        assert!(!reader.is_reading());
        assert_eq!(shared.await, Ok("one"));
        assert_eq!(reader.read(|| Ok("two")).await, Ok("two"));
    }

    #[tokio::test]
    async fn after_a_read_that_panics_files_are_read_again() {
        let reader = Reader::default();
        let problem = reader.read(|| panic!("on purpose")).await.unwrap_err();
        assert!(problem.contains("panicked"), "{problem}");
        assert_eq!(reader.read(|| Ok(())).await, Ok(()));
    }
}
