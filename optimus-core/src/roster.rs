//! Rosters of posts: of each post there is at most one live holder, and the members of a roster
//! hold about the same number of posts. [`HeldPosts`] is what one member knows, without I/O.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use crate::id::{InvalidName, QueueName, validate_name};

/// The most posts of a roster. A heartbeat lists all that a member holds.
pub const POSTS_MAX: u16 = 1024;

/// The part of its lease on which a holder relies.
const CERTAIN: (u32, u32) = (9, 10);

/// The name of a roster: what its posts are for, and its own name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RosterName(QueueName);

impl RosterName {
    /// Returns the name of the roster of the shards of that name.
    ///
    /// # Errors
    /// [`InvalidName`] unless it is 1 to 128 of `[A-Za-z0-9._-]`.
    pub fn shards(name: &str) -> Result<Self, InvalidName> {
        validate_name(name)?;
        Ok(Self(QueueName::of_slot(&format!("@shards.{name}"))))
    }

    /// Returns the name of the roster of the relays of a database, which has one post.
    ///
    /// # Errors
    /// [`InvalidName`] unless it is 1 to 128 of `[A-Za-z0-9._-]`.
    pub fn relays(name: &str) -> Result<Self, InvalidName> {
        validate_name(name)?;
        Ok(Self(QueueName::of_slot(&format!("@relay.{name}"))))
    }

    /// Returns the name of the roster of the slices of the source of that name.
    ///
    /// # Errors
    /// [`InvalidName`] unless it is 1 to 128 of `[A-Za-z0-9._-]`.
    pub fn sources(name: &str) -> Result<Self, InvalidName> {
        validate_name(name)?;
        Ok(Self(QueueName::of_slot(&format!("@sources.{name}"))))
    }

    /// Returns a roster whose keys are in the slot of a queue; for tests.
    pub fn within(queue: &QueueName) -> Self {
        Self(queue.clone())
    }

    /// Returns the place of its keys, which are never those of a queue.
    pub fn slot(&self) -> &QueueName {
        &self.0
    }
}

/// One post of a roster. When the number of posts changes, all posts have another generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Post {
    /// The generation. A later one is larger.
    pub generation: u64,
    /// The number of the post, from 0.
    pub index: u16,
}

impl fmt::Display for Post {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.generation, self.index)
    }
}

/// Reads the stored form, `<generation>/<index>`.
impl FromStr for Post {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let (generation, index) = text.split_once('/').ok_or(())?;
        let (generation, index) = (generation.parse(), index.parse());
        Ok(Self { generation: generation.map_err(drop)?, index: index.map_err(drop)? })
    }
}

/// What a member has heard of its roster last. It repeats this, in case that Redis loses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// The generation; 0 if nothing was heard, or there was none yet.
    pub generation: u64,
    /// How many posts it has.
    pub count: u16,
    /// The longest lease of a member.
    pub longest: Duration,
}

/// What Redis says of a post that a member holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// The member keeps it.
    Keep,
    /// The member must give it back once its work has stopped.
    Drop,
}

/// A post under the fence of one grant.
pub type Granted = (Post, u64);

/// What a member must do after an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Begin the work of these posts.
    pub start: Vec<Granted>,
    /// End the work of these soon, and then give them back.
    pub drain: Vec<Granted>,
    /// End the work of these at once: they are lost, or may be another's.
    pub stop: Vec<Granted>,
    /// Give these back, which were granted and not begun.
    pub back: Vec<Granted>,
}

/// What one member holds of a roster, as it knows it. All times are on the member's own clock.
#[derive(Debug, Default)]
pub struct HeldPosts {
    heard: Heard,
    posts: BTreeMap<Post, Held>,
    /// Until when the member may rely on what it holds.
    good_until: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    fence: u64,
    is_dropping: bool,
}

impl HeldPosts {
    /// Returns what was heard last.
    pub fn heard(&self) -> Heard {
        self.heard
    }

    /// Returns what the member holds, to show in its next call.
    pub fn shown(&self) -> Vec<Granted> {
        self.posts.iter().map(|(post, held)| (*post, held.fence)).collect()
    }

    /// Returns until when the member may rely on what it holds.
    pub fn good_until(&self) -> Duration {
        self.good_until
    }

    /// Takes in an answer that arrives at `now`, to a call that was sent at `sent`. The lease
    /// begins when the call was sent at the earliest.
    pub fn answered(
        &mut self,
        (sent, now): (Duration, Duration),
        lease: Duration,
        heard: Heard,
        posts: &[(Post, u64, Stay)],
    ) -> Changes {
        self.heard = heard;
        self.good_until = self.good_until.max(sent + lease * CERTAIN.0 / CERTAIN.1);
        if self.good_until <= now {
            return Changes { stop: self.lapse(now), ..Changes::default() };
        }
        let mut changes = Changes::default();
        let mut before = std::mem::take(&mut self.posts);
        for &(post, fence, stay) in posts {
            let is_dropping = stay == Stay::Drop;
            match before.remove(&post) {
                Some(held) if held.fence == fence => {
                    if is_dropping && !held.is_dropping {
                        changes.drain.push((post, fence));
                    }
                    let is_dropping = is_dropping || held.is_dropping;
                    self.posts.insert(post, Held { fence, is_dropping });
                    continue;
                }
                Some(held) => changes.stop.push((post, held.fence)),
                None => {}
            }
            if is_dropping {
                changes.back.push((post, fence));
            } else {
                changes.start.push((post, fence));
                self.posts.insert(post, Held { fence, is_dropping });
            }
        }
        changes.stop.extend(before.into_iter().map(|(post, held)| (post, held.fence)));
        changes
    }

    /// Returns what the member must stop at once, because its lease may end.
    pub fn lapse(&mut self, now: Duration) -> Vec<Granted> {
        if now < self.good_until {
            return Vec::new();
        }
        let lost = std::mem::take(&mut self.posts);
        lost.into_iter().map(|(post, held)| (post, held.fence)).collect()
    }

    /// Notes that the work of a post has ended under this fence. Returns whether the member still
    /// held it, so that it must give it back.
    pub fn ended(&mut self, (post, fence): Granted) -> bool {
        let is_held = self.posts.get(&post).is_some_and(|held| held.fence == fence);
        if is_held {
            self.posts.remove(&post);
        }
        is_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(10);
    const HEARD: Heard = Heard { generation: 7, count: 3, longest: LEASE };

    fn post(index: u16) -> Post {
        Post { generation: 7, index }
    }

    fn at(secs: u64) -> (Duration, Duration) {
        (Duration::from_secs(secs), Duration::from_secs(secs))
    }

    #[test]
    fn a_post_is_written_as_its_generation_and_its_number() {
        assert_eq!(post(3).to_string(), "7/3");
        assert_eq!("7/3".parse(), Ok(post(3)));
        for wrong in ["", "7", "7/", "/3", "7/x", "7/70000", "-7/3"] {
            assert_eq!(wrong.parse::<Post>(), Err(()), "{wrong}");
        }
        assert!(RosterName::shards("a b").is_err());
        assert_eq!(RosterName::shards("orders").unwrap().slot().as_str(), "@shards.orders");
        assert_eq!(RosterName::sources("orders").unwrap().slot().as_str(), "@sources.orders");
        assert!(RosterName::sources("a b").is_err());
    }

    #[test]
    fn what_is_granted_starts_and_what_is_no_longer_named_stops() {
        let mut held = HeldPosts::default();
        let granted = [(post(0), 5, Stay::Keep), (post(1), 5, Stay::Keep)];
        let changes = held.answered(at(0), LEASE, HEARD, &granted);
        assert_eq!(changes.start, [(post(0), 5), (post(1), 5)]);
        assert_eq!(held.heard(), HEARD);
        let changes = held.answered(at(1), LEASE, HEARD, &granted);
        assert_eq!(changes, Changes::default());
        let changes = held.answered(at(2), LEASE, HEARD, &granted[1..]);
        assert_eq!(changes, Changes { stop: vec![(post(0), 5)], ..Changes::default() });
        assert_eq!(held.shown(), [(post(1), 5)]);
    }

    #[test]
    fn a_post_that_must_be_given_back_drains_once_and_is_held_until_its_work_has_ended() {
        let mut held = HeldPosts::default();
        held.answered(at(0), LEASE, HEARD, &[(post(0), 5, Stay::Keep)]);
        let drop = [(post(0), 5, Stay::Drop), (post(1), 6, Stay::Drop)];
        let changes = held.answered(at(1), LEASE, HEARD, &drop);
        let expected =
            Changes { drain: vec![(post(0), 5)], back: vec![(post(1), 6)], ..Changes::default() };
        assert_eq!(changes, expected);
        assert_eq!(held.answered(at(2), LEASE, HEARD, &drop[..1]), Changes::default());
        assert_eq!(held.shown(), [(post(0), 5)]);
        assert!(held.ended((post(0), 5)) && !held.ended((post(0), 5)));
    }

    #[test]
    fn a_grant_under_another_fence_stops_the_work_of_the_earlier_one() {
        let mut held = HeldPosts::default();
        held.answered(at(0), LEASE, HEARD, &[(post(0), 5, Stay::Keep)]);
        let changes = held.answered(at(1), LEASE, HEARD, &[(post(0), 9, Stay::Keep)]);
        assert_eq!((changes.stop, changes.start), (vec![(post(0), 5)], vec![(post(0), 9)]));
        assert!(!held.ended((post(0), 5)), "the later grant is still held");
    }

    #[test]
    fn everything_stops_a_tenth_of_the_lease_before_its_end() {
        let mut held = HeldPosts::default();
        held.answered(at(0), LEASE, HEARD, &[(post(0), 5, Stay::Keep)]);
        assert!(held.lapse(Duration::from_millis(8_999)).is_empty());
        assert_eq!(held.lapse(Duration::from_secs(9)), [(post(0), 5)]);
        let late = (Duration::ZERO, Duration::from_secs(9));
        let changes = held.answered(late, LEASE, HEARD, &[(post(1), 6, Stay::Keep)]);
        assert_eq!(changes, Changes::default(), "the answer came too late");
        assert!(held.shown().is_empty());
    }
}
