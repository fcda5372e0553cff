//! The queues that a worker serves: [`Queues`].

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::atomic::{AtomicUsize, Ordering},
};

use optimus_core::QueueName;

use crate::served_queue::Served;

/// All served queues, in the order in which they were named.
#[derive(Debug)]
pub(crate) struct Queues {
    served: Vec<Served>,
    places: BTreeMap<QueueName, usize>,
    /// The number of workers of the queue with the most workers.
    peers: AtomicUsize,
}

impl Queues {
    pub(crate) fn new(served: Vec<Served>) -> Self {
        let places = served.iter().enumerate().map(|(at, queue)| (queue.name.clone(), at));
        Self { places: places.collect(), served, peers: AtomicUsize::new(1) }
    }

    /// Returns how many workers share the cleaning, according to the last answers.
    pub(crate) fn peers(&self) -> usize {
        self.peers.load(Ordering::Relaxed)
    }

    pub(crate) fn set_peers(&self, peers: usize) {
        self.peers.store(peers.max(1), Ordering::Relaxed);
    }

    /// Returns the position of the queue with that name.
    pub(crate) fn place(&self, name: &QueueName) -> Option<usize> {
        self.places.get(name).copied()
    }
}

impl Deref for Queues {
    type Target = [Served];

    fn deref(&self) -> &[Served] {
        &self.served
    }
}

impl<'a> IntoIterator for &'a Queues {
    type Item = &'a Served;
    type IntoIter = std::slice::Iter<'a, Served>;

    fn into_iter(self) -> Self::IntoIter {
        self.served.iter()
    }
}
