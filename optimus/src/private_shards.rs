//! Not public API: items that the generated code of `#[optimus::sharded]` uses.

use optimus_core::{BoxError, Round, Shard, TaskResult};

use super::{Gives, Worker};

/// Returns the value of a `#[data]` parameter of a sharded function.
///
/// # Errors
/// Names the type if the worker has no such value.
pub fn shard_data<T>(shard: &Shard) -> Result<T, BoxError>
where
    Worker: Gives<T>,
{
    Worker::give_of(shard.all_data()).ok_or_else(|| {
        let name = std::any::type_name::<T>();
        format!("no data of type {name}: add it to the worker with `.data(…)`").into()
    })
}

/// Types that a sharded function may return.
#[diagnostic::on_unimplemented(
    message = "a sharded function can't return `{Self}`",
    label = "not a `Result<Round, E>`",
    note = "return `Result<optimus::Round, E>` where `E` implements `std::error::Error` (and \
            `Send + Sync`), or is a `String`, or converts into \
            `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait EndsRound {
    /// Returns what the round has found.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn end(self) -> Result<Round, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<R: TaskResult<Output = Round>> EndsRound for R {
    fn end(self) -> Result<Round, BoxError> {
        self.into_result()
    }
}

/// Returns what the round has found.
///
/// # Errors
/// Returns the error of the function.
pub fn round_of<R: EndsRound>(returned: R) -> Result<Round, BoxError> {
    returned.end()
}

/// A parameter whose type is written `Shard`.
#[diagnostic::on_unimplemented(
    message = "this `Shard` is `{Self}`, not `optimus::Shard`",
    label = "a parameter of a type named `Shard` is given the shard",
    note = "`use optimus::Shard;`, or import the other type under another name"
)]
pub trait IsShard {
    /// Returns the shard itself.
    fn of(shard: Shard) -> Self;
}

impl IsShard for Shard {
    fn of(shard: Shard) -> Self {
        shard
    }
}
