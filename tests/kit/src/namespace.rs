//! Names that no other test uses.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Returns a new namespace at each call: `t-<pid>-<counter>-<random>`. The random part is necessary
/// because tests share a server and run in parallel, and the system reuses process ids.
pub fn namespace() -> String {
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("t-{}-{count}-{:08x}", process::id(), fastrand::u32(..))
}
