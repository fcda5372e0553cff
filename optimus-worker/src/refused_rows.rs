//! The rows of a source that can't be submitted, as the log tells of them: [`RefusedRows`]. Each
//! pass finds them again, so a pass tells only what the pass before has not told.

use std::{collections::BTreeMap, time::Duration};

use optimus_core::{Error, log::Log, log_event};

use crate::{decide_outcome, user_code::discard};

/// How often the same row is logged, at most.
const AGAIN_AFTER: Duration = Duration::from_secs(3600);
/// The longest text of a key in the log.
const KEY_CHARS_MAX: usize = 200;
/// The longest text of an error in the figures.
const ERROR_CHARS_MAX: usize = 1_000;

/// The refused rows of one slice.
pub(crate) struct RefusedRows {
    log: Log,
    source: &'static str,
    /// By the place of the table in the plan, while the last pass had some.
    passes: BTreeMap<usize, Passes>,
}

/// What the present pass over a table has refused, and what was logged.
#[derive(Debug, Default)]
struct Passes {
    first: Option<String>,
    count: u64,
    logged: Option<(String, Duration)>,
    logged_count: u64,
}

impl RefusedRows {
    pub(crate) fn new(log: Log, source: &'static str) -> Self {
        Self { log, source, passes: BTreeMap::new() }
    }

    /// Notes the refused rows of a page, with their keys. Returns why the last one was refused.
    pub(crate) fn note(
        &mut self,
        (at, table): (usize, &str),
        now: Duration,
        rows: Vec<(String, Error)>,
    ) -> Option<String> {
        let mut last = None;
        for (key, problem) in rows {
            let key: String = key.chars().take(KEY_CHARS_MAX).collect();
            let error = decide_outcome::text(&problem);
            discard(problem);
            last = Some(format!("{key}: {error}").chars().take(ERROR_CHARS_MAX).collect());
            if self.passes.entry(at).or_default().add(&key, now) {
                let (source, table) = (self.source, table.to_owned());
                let text = "a row can't be submitted; each pass counts it as refused, and the log \
                            tells it again after an hour";
                log_event!(self.log, WARN, source, table, key, error, "{text}");
            }
        }
        last
    }

    /// Notes the end of a pass. Returns whether no table has refused rows any more.
    pub(crate) fn pass_ended(&mut self, (at, table): (usize, &str)) -> bool {
        if let Some(passes) = self.passes.get_mut(&at) {
            let news = passes.ended();
            if passes.logged.is_none() {
                self.passes.remove(&at);
            }
            if let Some((key, count)) = news {
                let (source, table) = (self.source, table.to_owned());
                let text = "a pass found several rows that can't be submitted; the key is that of \
                            the first one";
                log_event!(self.log, WARN, source, table, count, key, "{text}");
            }
        }
        self.passes.is_empty()
    }
}

impl Passes {
    /// Adds a row. Returns whether to log it: if it is the first one of its pass, and was not the
    /// first one of the last pass.
    fn add(&mut self, key: &str, now: Duration) -> bool {
        self.count += 1;
        if self.first.is_some() {
            return false;
        }
        self.first = Some(key.to_owned());
        let is_known = self
            .logged
            .as_ref()
            .is_some_and(|(logged, at)| logged == key && now.saturating_sub(*at) < AGAIN_AFTER);
        if !is_known {
            self.logged = Some((key.to_owned(), now));
            self.logged_count = 1;
        }
        !is_known
    }

    /// Ends a pass. Returns its first row and how many there were, if that is to be logged.
    fn ended(&mut self) -> Option<(String, u64)> {
        let count = std::mem::take(&mut self.count);
        let Some(first) = self.first.take() else {
            self.logged = None;
            return None;
        };
        let was = std::mem::replace(&mut self.logged_count, count);
        (count > 1 && count != was).then_some((first, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// Reads a pass; returns which rows are logged, and what its end logs.
    fn pass(passes: &mut Passes, now: Duration, keys: &[&str]) -> (Vec<String>, Option<u64>) {
        let logged = keys.iter().filter(|key| passes.add(key, now));
        (logged.map(ToString::to_string).collect(), passes.ended().map(|(_, count)| count))
    }

    #[test]
    fn a_pass_logs_its_first_refused_row_and_how_many_there_were_unless_the_last_pass_has() {
        let mut passes = Passes::default();
        assert_eq!(pass(&mut passes, S, &["1", "2", "3"]), (vec!["1".to_owned()], Some(3)));
        assert_eq!(pass(&mut passes, 2 * S, &["1", "2", "3"]), (vec![], None));
        assert_eq!(pass(&mut passes, 3 * S, &["1", "2"]), (vec![], Some(2)));
        assert_eq!(pass(&mut passes, 4 * S, &["2"]), (vec!["2".to_owned()], None));
        assert_eq!(pass(&mut passes, 5 * S, &["2"]), (vec![], None));
        let later = AGAIN_AFTER + 5 * S;
        assert_eq!(pass(&mut passes, later, &["2"]), (vec!["2".to_owned()], None));
        assert_eq!(pass(&mut passes, later, &[]), (vec![], None));
        assert!(passes.logged.is_none(), "it is forgotten");
        assert_eq!(pass(&mut passes, later, &["2"]), (vec!["2".to_owned()], None));
    }
}
