//! The sorted set: members in the order of (score, bytes), with lookup by name.

use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use crate::error::CommandError;
use crate::number;

type Member = Arc<[u8]>;
type EntryBound = Bound<(Score, Member)>;

/// A score. It is never NaN, so scores have a total order.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Score(f64);

impl Eq for Score {}

#[expect(clippy::derive_ord_xor_partial_ord, reason = "without NaN, the partial order is total")]
impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.partial_cmp(other).expect("no command lets NaN become a score")
    }
}

/// A sorted set.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZSet {
    order: BTreeSet<(Score, Member)>,
    scores: HashMap<Member, Score>,
}

impl ZSet {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).map(|score| score.0)
    }

    /// Adds the member or changes its score.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64) {
        let member = self.take(member).unwrap_or_else(|| Member::from(member));
        self.order.insert((Score(score), member.clone()));
        self.scores.insert(member, Score(score));
    }

    /// Removes the member. Returns whether it existed.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        self.take(member).is_some()
    }

    /// Returns the number of members before this one.
    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let (member, score) = self.scores.get_key_value(member)?;
        Some(self.order.range(..(*score, member.clone())).count())
    }

    /// Returns all members with their scores, the lowest score first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order.iter().map(|(score, member)| (&**member, score.0))
    }

    /// Returns the members whose score is in the range, the lowest score first.
    pub(crate) fn range(
        &self,
        range: ScoreRange,
    ) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + use<'_> {
        range
            .bounds()
            .map(|bounds| self.order.range::<(Score, Member), _>(bounds))
            .into_iter()
            .flatten()
            .map(|(score, member)| (&**member, score.0))
    }

    /// Removes and returns the lowest member.
    pub(crate) fn pop_first(&mut self) -> Option<(Vec<u8>, f64)> {
        let (score, member) = self.order.pop_first()?;
        self.scores.remove(&member);
        Some((member.to_vec(), score.0))
    }

    fn take(&mut self, member: &[u8]) -> Option<Member> {
        let (member, score) = self.scores.remove_entry(member)?;
        let entry = (score, member);
        self.order.remove(&entry);
        Some(entry.1)
    }
}

/// One end of a range of scores, as in `(1.5`, `2` or `-inf`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreBound {
    score: f64,
    exclusive: bool,
}

impl ScoreBound {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, CommandError> {
        let (digits, exclusive) =
            bytes.strip_prefix(b"(").map_or((bytes, false), |digits| (digits, true));
        let score = number::float(digits).ok_or(CommandError::NotAScoreRange)?;
        Ok(Self { score, exclusive })
    }
}

/// A range of scores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScoreRange {
    pub(crate) min: ScoreBound,
    pub(crate) max: ScoreBound,
}

impl ScoreRange {
    pub(crate) fn parse(min: &[u8], max: &[u8]) -> Result<Self, CommandError> {
        Ok(Self { min: ScoreBound::parse(min)?, max: ScoreBound::parse(max)? })
    }

    /// Returns the range over (score, member), or `None` if it is empty.
    ///
    /// There is no largest member, so "above this score" can't be written with a member. It means
    /// "from the next float on". Only infinity is above the greatest float.
    fn bounds(self) -> Option<(EntryBound, EntryBound)> {
        let Self { min, max } = self;
        let impossible = (min.exclusive && min.score == f64::INFINITY)
            || (max.exclusive && max.score == f64::NEG_INFINITY);
        let from = if min.exclusive { min.score.next_up() } else { min.score };
        let to = if max.exclusive { max.score } else { max.score.next_up() };
        let lowest = |score| (Score(score), Member::from([]));
        let upper = if !max.exclusive && max.score == f64::INFINITY {
            Bound::Unbounded
        } else {
            Bound::Excluded(lowest(to))
        };
        let empty = impossible || (upper != Bound::Unbounded && from >= to);
        (!empty).then(|| (Bound::Included(lowest(from)), upper))
    }
}
