//! Receives completion messages of ended tasks: one blocked connection per queue, while any handle
//! waits.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use crate::{
    broker::Broker,
    guarded_drop::{discard, send},
    id::{QueueName, TaskId},
    platform,
    state::TaskState,
};

const BLOCK_FOR: Duration = Duration::from_secs(5);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);

/// The waiters for the ends of tasks.
pub(super) struct CompletionListeners(Arc<Inner>);

struct Inner {
    broker: Broker,
    /// The runtime of the listeners, because a handle may be awaited on another runtime, which ends
    /// earlier.
    runtime: Handle,
    address: String,
    queues: Mutex<HashMap<QueueName, Waiting>>,
    last_serial: AtomicU64,
}

type Waiting = HashMap<TaskId, Waiters>;

/// The waiters for one task, in order of arrival. Each has its own channel, so that a simulation
/// wakes them in this order.
type Waiters = BTreeMap<u64, oneshot::Sender<TaskState>>;

/// A wait for one task's end. Its drop ends the wait.
pub(super) struct Subscription {
    inner: Arc<Inner>,
    id: TaskId,
    serial: u64,
    receiver: oneshot::Receiver<TaskState>,
}

impl Subscription {
    /// Returns the state in the next completion message; `None` if there will be none. Call this
    /// method only once.
    pub(super) async fn completion(&mut self) -> Option<TaskState> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut queues = self.inner.queues();
        let Some(waiting) = queues.get_mut(self.id.queue()) else { return };
        let Some(waiters) = waiting.get_mut(&self.id) else { return };
        let sender = waiters.remove(&self.serial);
        if waiters.is_empty() {
            waiting.remove(&self.id);
        }
        drop(queues);
        // The drop wakes the caller, whose waker may lock the queues.
        discard(sender);
    }
}

impl CompletionListeners {
    pub(super) fn new(broker: Broker) -> Self {
        let address = platform::new_uuid().simple().to_string();
        Self(Arc::new(Inner {
            broker,
            runtime: Handle::current(),
            address,
            queues: Mutex::default(),
            last_serial: AtomicU64::new(0),
        }))
    }

    /// Returns the name under which this client registers as waiting.
    pub(super) fn address(&self) -> &str {
        &self.0.address
    }

    /// Starts to wait for a task's end.
    pub(super) fn subscribe(&self, id: &TaskId) -> Subscription {
        let mut queues = self.0.queues();
        if !queues.contains_key(id.queue()) {
            queues.insert(id.queue().clone(), Waiting::default());
            self.0.runtime.spawn(listen(self.0.clone(), id.queue().clone()));
        }
        let waiting = queues.entry(id.queue().clone()).or_default();
        let serial = self.0.last_serial.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, receiver) = oneshot::channel();
        waiting.entry(id.clone()).or_default().insert(serial, sender);
        Subscription { inner: self.0.clone(), id: id.clone(), serial, receiver }
    }
}

impl Inner {
    fn queues(&self) -> MutexGuard<'_, HashMap<QueueName, Waiting>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, queue: &QueueName, completions: Vec<(TaskId, TaskState)>) {
        let mut queues = self.queues();
        let Some(waiting) = queues.get_mut(queue) else { return };
        let mut ended = Vec::new();
        for (id, state) in completions {
            let waiters = waiting.remove(&id).unwrap_or_default();
            ended.extend(waiters.into_values().map(|sender| (sender, state)));
        }
        // A waker may take its time, or lock the queues.
        drop(queues);
        for (sender, state) in ended {
            send(sender, state);
        }
    }

    /// Returns whether there are waiters. If there are none, the queue's listener ends, and the
    /// next waiter starts another.
    fn anybody_waits(&self, queue: &QueueName) -> bool {
        let mut queues = self.queues();
        let waits = queues.get(queue).is_some_and(|waiting| !waiting.is_empty());
        if !waits {
            queues.remove(queue);
        }
        waits
    }
}

/// Runs until a wait ends without a message and there are no waiters. So a caller that awaits one
/// task after another keeps the listener.
async fn listen(inner: Arc<Inner>, queue: QueueName) {
    let broker = inner.broker.blocking("completion listener");
    loop {
        match broker.wait_for_completions(&queue, &inner.address, BLOCK_FOR).await {
            Ok(completions) if completions.is_empty() => {
                if !inner.anybody_waits(&queue) {
                    return;
                }
            }
            Ok(completions) => inner.deliver(&queue, completions),
            Err(_) if !inner.anybody_waits(&queue) => return,
            Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        sync::atomic::AtomicBool,
        task::{Context, Wake, Waker},
    };

    use super::*;
    use crate::{bomb_waker::bomb, broker::Endpoint};

    struct Locks(Arc<Inner>, AtomicBool);

    impl Wake for Locks {
        fn wake(self: Arc<Self>) {
            self.1.store(self.0.queues.try_lock().is_ok(), Ordering::Release);
        }
    }

    #[tokio::test]
    async fn a_waker_may_panic_or_wait_for_another_task() {
        let broker = Broker::new(Endpoint::parse("memory://wakers").unwrap(), "test", "test");
        let listeners = CompletionListeners::new(broker);
        let queue = QueueName::new("q").unwrap();
        let ids = [(); 3].map(|()| TaskId::new(queue.clone()));
        let [mut first, mut second, mut third] = ids.each_ref().map(|id| listeners.subscribe(id));
        let (mut panics, mut locks) = (pin!(first.completion()), pin!(second.completion()));
        assert!(panics.as_mut().poll(&mut Context::from_waker(&bomb())).is_pending());
        let could_lock = Arc::new(Locks(listeners.0.clone(), AtomicBool::new(false)));
        let waker = Waker::from(could_lock.clone());
        assert!(locks.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let ended = ids.iter().map(|id| (id.clone(), TaskState::Success));
        listeners.0.deliver(&queue, ended.collect());
        assert_eq!(third.completion().await, Some(TaskState::Success));
        assert_eq!(panics.await, Some(TaskState::Success));
        assert!(could_lock.1.load(Ordering::Acquire), "no lock is held while a waker runs");
    }
}
