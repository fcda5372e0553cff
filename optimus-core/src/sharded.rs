//! Sharded functions: what a worker runs again and again for each shard of the data, [`Sharded`].

use std::{pin::Pin, time::Duration};

use crate::{
    Error, control_words::BoxError, data::DataKey, id::validate_name, roster::POSTS_MAX,
    shard::Shard,
};

/// What one round over a shard has found. A sharded function returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    /// There may be more to do: the next round begins at once.
    Again,
    /// There was nothing to do: the next round begins after a rest. With `walk = "once"`, the pass
    /// over this shard has ended.
    Idle,
}

/// How often a shard is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Walk {
    /// Again and again.
    #[default]
    Forever,
    /// Once, until a round finds nothing. An operator begins the next pass.
    Once,
}

/// The options of a sharded function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShardedOptions {
    /// How many shards there are at first. An operator may change it.
    pub shards: u16,
    /// The longest rest after a round that found nothing.
    pub idle: Duration,
    /// How often a shard is gone through.
    pub walk: Walk,
}

/// A started round.
pub type RunningRound = Pin<Box<dyn Future<Output = Result<Round, BoxError>> + Send>>;

/// A function that workers run for each shard of the data. `#[sharded]` makes it from a function,
/// and registers it through `inventory`.
#[derive(Debug, Clone, Copy)]
pub struct Sharded {
    name: &'static str,
    place: &'static str,
    options: ShardedOptions,
    required_data: fn() -> Vec<DataKey>,
    run: fn(Shard) -> Result<RunningRound, BoxError>,
}

inventory::collect!(Sharded);

impl Sharded {
    /// Makes a definition. `place` is where the function is written.
    #[doc(hidden)]
    pub const fn new(
        (name, place): (&'static str, &'static str),
        options: ShardedOptions,
        required_data: fn() -> Vec<DataKey>,
        run: fn(Shard) -> Result<RunningRound, BoxError>,
    ) -> Self {
        Self { name, place, options, required_data, run }
    }

    /// Returns every definition that `#[sharded]` registered in the crates that are linked in.
    pub fn registered() -> impl Iterator<Item = Self> {
        inventory::iter::<Self>.into_iter().copied()
    }

    /// Returns the name, by which [`Client::shards`](crate::Client::shards) finds the shards.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns where the function is written, for messages.
    pub fn place(&self) -> &'static str {
        self.place
    }

    /// Returns the options.
    pub fn options(&self) -> ShardedOptions {
        self.options
    }

    /// Returns the data that the function needs.
    pub fn required_data(&self) -> Vec<DataKey> {
        (self.required_data)()
    }

    /// Starts a round.
    #[doc(hidden)]
    pub fn run(&self, shard: Shard) -> Result<RunningRound, BoxError> {
        (self.run)(shard)
    }

    /// Refuses options that no worker can use.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        let ShardedOptions { shards, idle, .. } = self.options;
        let refuse = |what: String| Err(Error::invalid(format!("shards {:?}: {what}", self.name)));
        if let Err(problem) = validate_name(self.name) {
            return refuse(format!("the name: {problem}"));
        }
        if shards == 0 || shards > POSTS_MAX {
            return refuse(format!("the number is {shards}; use 1 to {POSTS_MAX}"));
        }
        if idle.is_zero() {
            return refuse("`idle` is 0, which would keep Redis and the database busy".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &'static str, shards: u16, idle: Duration) -> Sharded {
        let options = ShardedOptions { shards, idle, walk: Walk::Forever };
        let run = |_| Ok(Box::pin(std::future::ready(Ok(Round::Idle))) as RunningRound);
        Sharded::new((name, "here"), options, Vec::new, run)
    }

    #[test]
    fn options_that_no_worker_can_use_are_refused() {
        let second = Duration::from_secs(1);
        of("orders", 10, second).check().unwrap();
        of("orders", POSTS_MAX, second).check().unwrap();
        let wrong = [
            of("a b", 1, second),
            of("a", 0, second),
            of("a", 1025, second),
            of("a", 1, Duration::ZERO),
        ];
        for sharded in wrong {
            assert!(sharded.check().unwrap_err().is_invalid(), "{sharded:?}");
        }
    }
}
