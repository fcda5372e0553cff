//! One queue on both sides, and their comparison: [`Side`].

use crate::{
    actors::Actors, answer::Answer, bench::Bench, call::Call, dump::Dump, keys_as_lines::Picture,
    observed::Observed, reference::Queue,
};

/// The longest ready list that wakes a worker whenever it grows, in case a wakeup was lost.
const SHORT: usize = 16;

/// One queue: the store, the reference, and the callers.
pub(crate) struct Side<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) reference: Queue,
    pub(crate) actors: Actors,
    /// Whether the wakeup list holds its token.
    pub(crate) has_wakeup: bool,
}

impl Side<'_> {
    /// Checks that no live task, entry or worker is left.
    pub(crate) fn assert_drained(&self) -> Result<(), String> {
        let mut kept = self.reference.tasks.keys();
        if let Some(id) = kept.find(|id| !self.reference.state(id).is_terminal()) {
            return Err(format!("{id} is still {}", self.reference.state(id)));
        }
        let left = (self.reference.ready.len(), self.reference.workers.len());
        if left == (0, 0) { Ok(()) } else { Err(format!("entries and workers are left: {left:?}")) }
    }

    /// Checks that no keys are left except those that expire.
    pub(crate) fn assert_retired(&self) -> Result<(), String> {
        let Queue { fence, purged, watched_at, success, .. } = &self.reference;
        let is_blank = (*fence, *purged, *watched_at) == (0, 0, None) && success.is_empty();
        if is_blank { Ok(()) } else { Err("an unused queue is kept".into()) }
    }

    /// Compares the answer, every key, the structure, and the wakeup list.
    pub(crate) fn compare(
        &mut self,
        now: u64,
        call: &Call,
        answer: &Answer,
        dump: &Dump,
    ) -> Result<(), String> {
        let (due_before, length_before) = (self.reference.due_hint, self.reference.ready.len());
        self.reference.follow(now, call, &Observed::of(answer, dump, &self.bench.queue))?;
        let difference = Picture::of(dump, now).difference(&self.reference.picture(now));
        if !difference.is_empty() {
            return Err(format!("the keys differ:\n{difference}"));
        }
        let wrong: Vec<String> =
            optimus_fsck::check(dump).into_iter().map(|wrong| wrong.text).collect();
        if !wrong.is_empty() {
            return Err(format!("fsck finds:\n  {}", wrong.join("\n  ")));
        }
        self.has_wakeup = dump.contains_key("wake");
        let is_noticed =
            self.has_wakeup || self.reference.woken || self.reference.paused_since.is_some();
        if self.reference.claimable() && !is_noticed {
            return Err("a task is ready, but the wakeup list is empty".into());
        }
        let has_grown = self.reference.ready.len() > length_before;
        if has_grown && length_before <= SHORT && !self.has_wakeup {
            return Err("a short ready list has grown, and the wakeup list has no wakeup".into());
        }
        let due = self.reference.due_hint;
        let is_earlier = |due: u64| due_before.is_none_or(|before| due < before);
        if due.is_some_and(is_earlier) && !self.has_wakeup {
            return Err("a task is due before all others, but the wakeup list is empty".into());
        }
        Ok(())
    }
}
