//! Threads for handlers that block: [`Threads`]. This module is for the other Optimus crates.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
    time::Duration,
};

/// How long an idle thread waits for work before it ends.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// One piece of work, which catches its own panics.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// Threads that start when they are needed. A worker needs at most as many as it has slots, since
/// an attempt keeps its slot until its thread has returned.
///
/// They are not threads of the runtime. So work that never returns blocks no thread of the runtime,
/// and the end of the runtime or the process does not wait for it.
#[derive(Debug, Default)]
pub struct Threads(Mutex<Idle>);

#[derive(Debug, Default)]
struct Idle {
    next_number: u64,
    waiting: Vec<(u64, Sender<Work>)>,
}

impl Threads {
    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the work to an idle thread or to a new one.
    pub(crate) fn run(self: &Arc<Self>, mut work: Work) -> io::Result<()> {
        while let Some((_, thread)) = self.idle().waiting.pop() {
            match thread.send(work) {
                Ok(()) => return Ok(()),
                Err(unsent) => work = unsent.0,
            }
        }
        let threads = self.clone();
        let serve = move || threads.serve(work);
        thread::Builder::new().name("optimus-blocking".into()).spawn(serve).map(drop)
    }

    fn serve(&self, mut work: Work) {
        loop {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                return;
            }
            let (sender, inbox) = mpsc::channel();
            let number = {
                let mut idle = self.idle();
                idle.next_number += 1;
                let number = idle.next_number;
                idle.waiting.push((number, sender));
                number
            };
            let Some(next) = inbox.recv_timeout(IDLE_MAX).ok().or_else(|| {
                let mut idle = self.idle();
                let at = idle.waiting.iter().position(|(other, _)| *other == number);
                let unused = at.map(|at| idle.waiting.swap_remove(at));
                drop(idle);
                // A caller that has already taken the sender will send work.
                if unused.is_some() { None } else { inbox.recv().ok() }
            }) else {
                return;
            };
            work = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_goes_to_an_idle_thread_and_to_a_new_one_while_none_is_idle() {
        let threads = Arc::new(Threads::default());
        let (sender, received) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let blocked = Box::new(move || gate.recv().unwrap_or_default());
        threads.run(blocked).unwrap();
        let name = move || sender.send(thread::current().id()).unwrap();
        threads.run(Box::new(name.clone())).unwrap();
        let first = received.recv_timeout(IDLE_MAX).unwrap();
        while threads.idle().waiting.is_empty() {
            thread::yield_now();
        }
        threads.run(Box::new(name)).unwrap();
        assert_eq!(received.recv_timeout(IDLE_MAX).unwrap(), first);
        drop(open);
    }
}
