//! A user whose calls run together with those of others.

use optimus_core::{Task as _, TaskId};

use super::User;
use crate::gathered::Gathered;

const KEYS: u64 = 3;

impl User {
    pub(super) async fn submit_gathered(&mut self) {
        let queue = self.queues.pick(&mut self.random).clone();
        let key = self.random.u64(..KEYS);
        for _ in 0..self.random.usize(1..8) {
            let (number, id) = (self.number(), TaskId::new(queue.clone()));
            let fails = if self.random.u8(..6) == 0 { self.random.u32(1..3) } else { 0 };
            let lasts_ms = if self.random.u8(..4) == 0 { self.random.u64(..600) } else { 1 };
            let call = Gathered { number, id: id.to_string(), key, fails, lasts_ms }.call();
            let handle = self.submit(number, call.id(id), None, 0).await;
            if let Some(handle) = handle.filter(|_| self.random.u8(..4) == 0) {
                self.await_result(number, handle);
            }
        }
    }
}
