//! Where a shard begins: its own position, or the smallest one of the generation before.

use serde::de::DeserializeOwned;

use crate::{broker::Positions, roster::Post};

/// How far a shard has come. The order is that of the way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Reached<T> {
    Start,
    At(T),
    End,
}

/// Returns how far a shard has come; `own` is what its holder has stored itself. A shard without a
/// position begins where all shards of the generation before have been.
pub(crate) fn reached<T: DeserializeOwned + Ord + Clone>(
    own: Option<&str>,
    before: &Positions,
    (generation, index): (u64, u16),
) -> Result<Option<T>, serde_json::Error> {
    let stored = before.posts.get(&Post { generation, index }).map(String::as_str);
    let place = match own.or(stored) {
        Some(text) => read(text)?,
        None => least(before, generation, read)?,
    };
    Ok(match place {
        Reached::At(position) => Some(position),
        Reached::Start | Reached::End => None,
    })
}

/// Returns the smallest of these positions.
pub(crate) fn smallest<T: DeserializeOwned + Ord>(
    stored: &[String],
) -> Result<Option<T>, serde_json::Error> {
    let positions = stored.iter().map(|text| serde_json::from_str(text));
    Ok(positions.collect::<Result<Vec<T>, _>>()?.into_iter().min())
}

/// Returns whether the pass over a shard has ended.
pub(crate) fn has_ended(
    own: Option<&str>,
    before: &Positions,
    (generation, index): (u64, u16),
) -> bool {
    let stored = before.posts.get(&Post { generation, index }).map(String::as_str);
    let ends = |text: &str| {
        // Only the end matters here, so all positions are the same.
        Ok(if text.is_empty() { Reached::End } else { Reached::At(()) })
    };
    let place = own.or(stored).map_or_else(|| least(before, generation, ends), ends);
    place.is_ok_and(|place: Reached<()>| place == Reached::End)
}

/// Returns the smallest position of the generation before `generation`.
fn least<T: Ord + Clone>(
    before: &Positions,
    generation: u64,
    read: impl Fn(&str) -> Result<Reached<T>, serde_json::Error>,
) -> Result<Reached<T>, serde_json::Error> {
    let mut base = Reached::Start;
    for (&generation, &count) in before.generations.range(..generation) {
        let mut least = Reached::End;
        for index in 0..count {
            let place = match before.posts.get(&Post { generation, index }) {
                Some(text) => read(text)?,
                None => base.clone(),
            };
            least = least.min(place);
        }
        base = least;
    }
    Ok(base)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<Reached<T>, serde_json::Error> {
    if text.is_empty() {
        return Ok(Reached::End);
    }
    serde_json::from_str(text).map(Reached::At)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(generations: &[(u64, u16)], posts: &[(u64, u16, &str)]) -> Positions {
        Positions {
            generations: generations.iter().copied().collect(),
            posts: posts
                .iter()
                .map(|&(generation, index, text)| (Post { generation, index }, text.to_owned()))
                .collect(),
            restarted: None,
        }
    }

    fn at(before: &Positions, generation: u64, index: u16) -> Option<i64> {
        reached(None, before, (generation, index)).unwrap()
    }

    #[test]
    fn a_shard_begins_at_its_own_position() {
        let before = positions(&[(1, 2)], &[(1, 0, "5"), (1, 1, "9")]);
        assert_eq!((at(&before, 1, 0), at(&before, 1, 1)), (Some(5), Some(9)));
        assert_eq!(reached(Some("7"), &before, (1, 0)).unwrap(), Some(7));
        assert!(reached::<i64>(Some("\"x\""), &before, (1, 0)).is_err());
    }

    #[test]
    fn a_new_shard_begins_where_all_old_ones_have_been() {
        let before = positions(&[(1, 2), (2, 3)], &[(1, 0, "5"), (1, 1, "9"), (2, 1, "6")]);
        assert_eq!((at(&before, 2, 0), at(&before, 2, 1)), (Some(5), Some(6)));
        assert_eq!(at(&before, 3, 0), Some(5), "two of the shards before have not begun");
        let before = positions(&[(1, 2)], &[(1, 0, "5")]);
        assert_eq!(at(&before, 2, 0), None, "one of the old ones has not begun");
        assert_eq!(at(&positions(&[], &[(1, 0, "5")]), 2, 0), None, "nothing is known of them");
    }

    #[test]
    fn a_pass_has_ended_when_all_old_shards_have_ended() {
        let half = positions(&[(1, 2)], &[(1, 0, ""), (1, 1, "9")]);
        assert!(has_ended(None, &half, (1, 0)) && !has_ended(None, &half, (1, 1)));
        assert!(!has_ended(None, &half, (2, 0)));
        assert_eq!(at(&half, 2, 0), Some(9));
        let whole = positions(&[(1, 2)], &[(1, 0, ""), (1, 1, "")]);
        assert!(has_ended(None, &whole, (2, 4)) && !has_ended(Some("1"), &whole, (1, 0)));
        assert!(!has_ended(None, &positions(&[], &[]), (1, 0)));
    }
}
