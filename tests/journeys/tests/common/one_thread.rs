//! A worker with one thread: [`OneThreadWorker`].

use std::{sync::mpsc, thread};

use optimus_worker::WorkerBuilder;
use tokio::{runtime::Builder, task::spawn_blocking};

/// A worker whose runtime has one thread, so that a handler can keep it. The worker runs on a
/// separate thread, and ends when this value is dropped.
pub struct OneThreadWorker {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl OneThreadWorker {
    pub fn start(builder: WorkerBuilder) -> Self {
        let worker = builder.build().unwrap();
        let (stop, stopped) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let stopped = async {
                drop(spawn_blocking(move || stopped.recv()).await);
            };
            runtime.block_on(worker.run_until(stopped)).unwrap();
        });
        Self { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for OneThreadWorker {
    fn drop(&mut self) {
        drop(self.stop.take());
        drop(self.thread.take().map(thread::JoinHandle::join));
    }
}
