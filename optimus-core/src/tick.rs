//! The instant of a schedule for which a task was submitted: [`Tick`].

use std::fmt::Write;

use chrono::{DateTime, FixedOffset, Offset as _, Utc};
use uuid::Uuid;

use crate::{
    id::{QueueName, TaskId},
    platform::instant,
};

/// The instant of a schedule for which a task was submitted; from
/// [`Context::tick`](crate::Context::tick), or as a parameter of a function with
/// `#[optimus::cron]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    nominal_ms: u64,
    offset_secs: i32,
    missed: u32,
    schedule: String,
}

impl Tick {
    pub(crate) fn new(name: &str, nominal_ms: u64, offset_secs: i64, missed: usize) -> Self {
        Self {
            nominal_ms,
            offset_secs: i32::try_from(offset_secs).unwrap_or_default(),
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
            schedule: name.to_owned(),
        }
    }

    /// Returns the tick of a task that no schedule has submitted: a call of the function itself.
    /// Its instant is the time of the call.
    #[doc(hidden)]
    pub fn of_call(id: &TaskId) -> Self {
        Self::new("", id.created().map_or(0, |at| at.timestamp_millis().unsigned_abs()), 0, 0)
    }

    /// Returns the instant of the schedule. The task starts later: because of the jitter, of tasks
    /// before it, or because no worker was there. A retry has the same instant.
    pub fn nominal(&self) -> DateTime<Utc> {
        instant(self.nominal_ms)
    }

    /// Returns the same instant by the clocks of the schedule's time zone.
    pub fn local(&self) -> DateTime<FixedOffset> {
        local(self.nominal_ms, self.offset_secs.into())
    }

    /// Returns how many instants before this one have no task, because no worker was there; at most
    /// 999 are counted.
    pub fn missed(&self) -> u32 {
        self.missed
    }

    /// Returns the name of the schedule; `None` if the function was called by a program.
    pub fn schedule(&self) -> Option<&str> {
        Some(&*self.schedule).filter(|name| !name.is_empty())
    }

    /// Returns the text under which a record has it.
    pub(crate) fn stored(&self) -> String {
        let Self { nominal_ms, offset_secs, missed, schedule } = self;
        format!("{nominal_ms}:{offset_secs}:{missed}:{schedule}")
    }

    /// Reads the text of [`stored`](Self::stored).
    pub(crate) fn from_stored(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, ':');
        let (nominal_ms, offset_secs) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        let (missed, schedule) = (parts.next()?.parse().ok()?, parts.next()?.to_owned());
        Some(Self { nominal_ms, offset_secs, missed, schedule })
    }
}

/// Returns an instant by clocks that are ahead of UTC by so many seconds.
pub(crate) fn local(instant_ms: u64, offset_secs: i64) -> DateTime<FixedOffset> {
    let offset = i32::try_from(offset_secs).ok().and_then(FixedOffset::east_opt);
    instant(instant_ms).with_timezone(&offset.unwrap_or_else(|| Utc.fix()))
}

/// Returns the id of the task of an instant: a version 7 uuid with the time of the instant, and a
/// hash of the schedule. So all workers make the same id.
pub(crate) fn tick_id(namespace: &str, queue: &QueueName, name: &str, nominal_ms: u64) -> TaskId {
    let mut text = String::new();
    write!(text, "{namespace}\n{name}").expect("a String grows");
    let hash = hash_of(text.as_bytes());
    let time = u128::from(nominal_ms & 0xffff_ffff_ffff) << 80;
    let (high, low) = (hash >> 116, hash & (u128::MAX >> 66));
    let bits = time | 7 << 76 | high << 64 | 2 << 62 | low;
    TaskId::of(queue.clone(), Uuid::from_u128(bits))
}

/// Returns the delay of an instant, of at most this many ms.
pub(crate) fn jitter_of(name: &str, nominal_ms: u64, most_ms: u64) -> u64 {
    let hash = hash_of(format!("{name}\n{nominal_ms}").as_bytes());
    u64::try_from((hash >> 32) % (u128::from(most_ms) + 1)).unwrap_or(0)
}

/// FNV-1a of 128 bits, mixed: the last bytes would otherwise hardly change the high bits.
fn hash_of(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const MIX: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    let step = |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
    let hash = bytes.iter().fold(BASIS, step);
    let hash = (hash ^ hash >> 64).wrapping_mul(MIX);
    (hash ^ hash >> 71).wrapping_mul(MIX) ^ hash >> 64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_tick_is_read_from_its_text_and_shows_the_local_time() {
        let tick = Tick::new("report.v2", 1_795_345_200_000, 8 * 3600, 3);
        assert_eq!(Tick::from_stored(&tick.stored()), Some(tick.clone()));
        assert_eq!(tick.local().to_rfc3339(), "2026-11-22T19:00:00+08:00");
        assert_eq!(tick.local(), tick.nominal());
        assert_eq!((tick.missed(), tick.schedule()), (3, Some("report.v2")));
        assert_eq!(Tick::from_stored("1:2:x:name"), None);
        let id = TaskId::new(QueueName::new("q").unwrap());
        let called = Tick::of_call(&id);
        assert_eq!((called.schedule(), Some(called.nominal())), (None, id.created()));
    }

    #[test]
    fn each_instant_of_each_schedule_has_an_id_of_its_own_and_always_the_same() {
        let queue = QueueName::new("q").unwrap();
        let names = (0..1_000).map(|n| format!("digest-{n}"));
        let ids = names.flat_map(|name| {
            let id = |ms| tick_id("shop", &queue, &name, ms).stored();
            [id(1_000), id(2_000)]
        });
        assert_eq!(ids.collect::<BTreeSet<_>>().len(), 2_000);
        let id = tick_id("shop", &queue, "digest", 1_795_345_200_000);
        assert_eq!(id.uuid().get_version_num(), 7);
        assert_eq!(id.made_ms(), 1_795_345_200_000);
        assert_eq!(id.uuid().get_variant(), uuid::Variant::RFC4122);
        assert_ne!(id, tick_id("other", &queue, "digest", 1_795_345_200_000));
        assert_eq!(id, tick_id("shop", &queue, "digest", 1_795_345_200_000));
    }

    #[test]
    fn a_jitter_is_spread_over_its_whole_time() {
        let delays: Vec<u64> = (0..1_000).map(|n| jitter_of("a", n * 60_000, 29_999)).collect();
        assert!(delays.iter().all(|delay| *delay < 30_000));
        let in_third = |third: u64| delays.iter().filter(|d| **d / 10_000 == third).count();
        assert!((0..3).all(|third| (250..420).contains(&in_third(third))));
        assert_eq!(jitter_of("a", 5, 0), 0);
    }
}
