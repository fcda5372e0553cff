//! The sharded functions that a worker serves, by name: [`Shardeds`].

use optimus_core::{Data, Error, Sharded};

/// The sharded functions of a worker, in the order of their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shardeds(Vec<Sharded>);

impl Shardeds {
    /// Refuses two functions with one name, invalid options and missing data. The same function may
    /// be named twice.
    pub(crate) fn new(all: impl IntoIterator<Item = Sharded>, data: &Data) -> Result<Self, Error> {
        let mut known: Vec<Sharded> = Vec::new();
        for sharded in all {
            sharded.check()?;
            match known.iter().find(|other| other.name() == sharded.name()) {
                None => known.push(sharded),
                Some(other) if other.place() == sharded.place() => {}
                Some(other) => {
                    return Err(Error::invalid(format!(
                        "two sharded functions are named {:?}: {} and {}; give one of them \
                         another name with #[sharded(name = \"…\")]",
                        sharded.name(),
                        other.place(),
                        sharded.place()
                    )));
                }
            }
        }
        for sharded in &known {
            let missing = sharded.required_data().into_iter().find(|key| !data.holds(*key));
            if let Some(missing) = missing {
                return Err(Error::invalid(format!(
                    "the sharded function {:?} needs data of type {}{}; add the data to the worker \
                     with .data(…)",
                    sharded.name(),
                    missing.name(),
                    data.similar(missing).map_or_else(String::new, |other| {
                        format!(", and the worker has only {other}, which is another type")
                    })
                )));
            }
        }
        known.sort_by_key(Sharded::name);
        Ok(Self(known))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sharded> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use optimus_core::{DataKey, Round, RunningRound, ShardedOptions, Walk};

    use super::*;

    fn of(name: &'static str, place: &'static str, data: fn() -> Vec<DataKey>) -> Sharded {
        let options =
            ShardedOptions { shards: 1, idle: Duration::from_secs(1), walk: Walk::Forever };
        let run = |_| Ok(Box::pin(std::future::ready(Ok(Round::Idle))) as RunningRound);
        Sharded::new((name, place), options, data, run)
    }

    fn refusal(all: &[Sharded], data: &Data) -> String {
        Shardeds::new(all.iter().copied(), data).unwrap_err().to_string()
    }

    #[test]
    fn two_functions_of_one_name_and_missing_data_are_refused() {
        let (one, other) = (of("orders", "a.rs:1", Vec::new), of("orders", "b.rs:2", Vec::new));
        let known = Shardeds::new([one, one], &Data::new()).unwrap();
        assert_eq!(known.iter().count(), 1, "the same function may be named twice");
        let problem = refusal(&[one, other], &Data::new());
        assert!(problem.contains("a.rs:1") && problem.contains("b.rs:2"), "{problem}");
        let needy = of("orders", "c.rs:3", || vec![DataKey::of::<u8>()]);
        let problem = refusal(&[needy], &Data::new());
        assert!(problem.contains("needs data of type u8"), "{problem}");
        assert!(Shardeds::new([needy], &Data::new().with(1_u8)).is_ok());
        assert!(refusal(&[of("a b", "d.rs:4", Vec::new)], &Data::new()).contains("the name"));
    }
}
