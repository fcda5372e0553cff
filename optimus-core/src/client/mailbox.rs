//! Letters that tell of ended tasks: one blocked connection a queue, while anybody waits.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::broadcast;

use crate::{
    broker::Broker,
    id::{QueueName, TaskId},
    machine,
    state::TaskState,
};

const BLOCK_FOR: Duration = Duration::from_secs(5);
const PAUSE_AFTER_ERROR: Duration = Duration::from_millis(500);

/// Who waits for which task's end.
pub(super) struct Mailboxes(Arc<Inner>);

struct Inner {
    broker: Broker,
    address: String,
    queues: Mutex<HashMap<QueueName, Waiting>>,
}

type Waiting = HashMap<TaskId, broadcast::Sender<TaskState>>;

/// Hears of one task's end.
pub(super) struct Letters(broadcast::Receiver<TaskState>);

impl Letters {
    pub(super) async fn changed(&mut self) -> Result<TaskState, broadcast::error::RecvError> {
        self.0.recv().await
    }
}

impl Mailboxes {
    pub(super) fn new(broker: Broker) -> Self {
        let address = machine::new_uuid().simple().to_string();
        Self(Arc::new(Inner { broker, address, queues: Mutex::default() }))
    }

    /// The name under which this client registers as waiting.
    pub(super) fn address(&self) -> &str {
        &self.0.address
    }

    /// Starts to listen for a task's end.
    pub(super) fn subscribe(&self, id: &TaskId) -> Letters {
        let mut queues = self.0.queues();
        if !queues.contains_key(id.queue()) {
            queues.insert(id.queue().clone(), Waiting::new());
            tokio::spawn(listen(self.0.clone(), id.queue().clone()));
        }
        let waiting = queues.entry(id.queue().clone()).or_default();
        let sender = waiting.entry(id.clone()).or_insert_with(|| broadcast::channel(1).0);
        Letters(sender.subscribe())
    }
}

impl Inner {
    fn queues(&self) -> MutexGuard<'_, HashMap<QueueName, Waiting>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, id: &TaskId, state: TaskState) {
        if let Some(sender) = self.queues().get_mut(id.queue()).and_then(|w| w.remove(id)) {
            // The waiter may have given up.
            drop(sender.send(state));
        }
    }

    /// Forgets who gave up; `false` once nobody waits, and then the queue's listener ends.
    fn anybody_waits(&self, queue: &QueueName) -> bool {
        let mut queues = self.queues();
        let Some(waiting) = queues.get_mut(queue) else { return false };
        waiting.retain(|_, sender| sender.receiver_count() > 0);
        if waiting.is_empty() {
            queues.remove(queue);
            return false;
        }
        true
    }
}

async fn listen(inner: Arc<Inner>, queue: QueueName) {
    let broker = inner.broker.blocking("mailbox");
    let queues = [queue];
    while inner.anybody_waits(&queues[0]) {
        match broker.wait_for_mail(&queues, &inner.address, BLOCK_FOR).await {
            Ok(Some((id, state))) => inner.deliver(&id, state),
            Ok(None) => {}
            Err(_) => tokio::time::sleep(PAUSE_AFTER_ERROR).await,
        }
    }
}
