//! The clients that wait for a list, and the delivery of elements to them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::keyspace::Keyspace;
use crate::store::Store;
use crate::value::{Bytes, List};

/// An element popped from a list.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) key: Bytes,
    pub(crate) element: Bytes,
    /// The expiry of the list, in ms.
    expires_at_ms: Option<u64>,
}

/// The waiting clients, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    queues: HashMap<Bytes, VecDeque<u64>>,
    waiting: HashMap<u64, Waiter>,
    /// The lists with waiting clients to which elements were pushed since these clients were last
    /// served.
    pushed: Vec<Bytes>,
    last_id: u64,
}

#[derive(Debug)]
struct Waiter {
    keys: Vec<Bytes>,
    deliver: oneshot::Sender<Delivery>,
}

impl Waiters {
    /// Notes a push. The waiting clients are served when the command or script has ended.
    pub(crate) fn signal(&mut self, key: &[u8]) {
        if self.queues.contains_key(key) {
            self.pushed.push(key.to_vec());
        }
    }

    fn join(&mut self, keys: &[Bytes]) -> (u64, oneshot::Receiver<Delivery>) {
        let (deliver, delivery) = oneshot::channel();
        self.last_id += 1;
        for key in keys {
            self.queues.entry(key.clone()).or_default().push_back(self.last_id);
        }
        self.waiting.insert(self.last_id, Waiter { keys: keys.to_vec(), deliver });
        (self.last_id, delivery)
    }

    fn leave(&mut self, id: u64) -> Option<Waiter> {
        let waiter = self.waiting.remove(&id)?;
        for key in &waiter.keys {
            if let Some(queue) = self.queues.get_mut(key) {
                queue.retain(|waiting| *waiting != id);
                if queue.is_empty() {
                    self.queues.remove(key);
                }
            }
        }
        Some(waiter)
    }

    fn first(&self, key: &[u8]) -> Option<u64> {
        self.queues.get(key)?.front().copied()
    }
}

impl Keyspace {
    /// Gives the elements of lists with a push to the clients that wait for them.
    pub(crate) fn serve_waiters(&mut self) {
        for key in std::mem::take(&mut self.waiters.pushed) {
            while let Some(id) = self.waiters.first(&key) {
                let expires_at_ms = self.expiry(&key);
                // The key may have another type now. In this case, there is no element to give.
                let popped = self.edit(&key, List::pop_front).ok().flatten().flatten();
                let Some(element) = popped else { break };
                let waiter = self.waiters.leave(id).expect("a client in a queue is waiting");
                let delivery = Delivery { key: key.clone(), element, expires_at_ms };
                if let Err(delivery) = waiter.deliver.send(delivery) {
                    self.give_back(delivery);
                }
            }
        }
    }

    /// Undoes a pop. If the key has another type now, the element is lost.
    fn give_back(&mut self, delivery: Delivery) {
        let Delivery { key, element, expires_at_ms } = delivery;
        let is_new = self.data(&key).is_none();
        let _ = self.upsert(&key, |list: &mut List| list.push_front(element));
        if is_new {
            self.set_expiry(&key, expires_at_ms);
        }
    }
}

/// The wait of one client. If it is dropped, the client leaves the queues, and an element that it
/// has not taken goes back.
#[derive(Debug)]
pub(crate) struct Wait {
    store: Store,
    id: u64,
    delivery: oneshot::Receiver<Delivery>,
}

impl Wait {
    pub(crate) fn new(store: &Store, keyspace: &mut Keyspace, keys: &[Bytes]) -> Self {
        let (id, delivery) = keyspace.waiters.join(keys);
        Self { store: store.clone(), id, delivery }
    }

    /// Returns the element that arrives within `timeout`, or at any time if there is no timeout.
    pub(crate) async fn outcome(mut self, timeout: Option<Duration>) -> Option<Delivery> {
        let clock = self.store.clock().clone();
        let too_late = async {
            match timeout {
                Some(timeout) => clock.sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            delivery = &mut self.delivery => delivery.ok(),
            () = too_late => {
                // An element may arrive between the last check and the end of the wait.
                self.store.engine().keyspace.waiters.leave(self.id);
                self.delivery.try_recv().ok()
            }
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut engine = self.store.engine();
        engine.keyspace.waiters.leave(self.id);
        if let Ok(delivery) = self.delivery.try_recv() {
            let key = delivery.key.clone();
            engine.keyspace.give_back(delivery);
            engine.keyspace.waiters.signal(&key);
            engine.keyspace.serve_waiters();
        }
    }
}
