//! Not public API: items that the generated code of `#[optimus::source]` uses.

use std::sync::Arc;

use optimus_core::{BoxError, Found, FoundPage, Page, PageFacts, Standing, TaskResult, found_rows};
use serde::{Serialize, de::DeserializeOwned};

use super::{Gives, Worker};

/// Returns the value of a `#[data]` parameter of a source.
///
/// # Errors
/// Names the type if the worker has no such value.
pub fn page_data<T>(facts: &PageFacts) -> Result<T, BoxError>
where
    Worker: Gives<T>,
{
    Worker::give_of(facts.shard.all_data()).ok_or_else(|| {
        let name = std::any::type_name::<T>();
        format!("no data of type {name}: add it to the worker with `.data(…)`").into()
    })
}

/// A parameter whose type is written `Page<…>`.
#[diagnostic::on_unimplemented(
    message = "this `Page` is `{Self}`, not an `optimus::Page` with the type of the table's key",
    label = "the page to read",
    note = "write `page: optimus::Page<i64>` for a table whose key is an `i64`; the type of a key \
            implements `serde::Serialize` and `serde::Deserialize`"
)]
pub trait IsPage: Sized {
    /// The type of the keys.
    type Key: Serialize + DeserializeOwned + Send + 'static;
    /// Returns the page itself.
    fn of(facts: &Arc<PageFacts>) -> Self;
}

#[diagnostic::do_not_recommend]
impl<K: Serialize + DeserializeOwned + Send + 'static> IsPage for Page<K> {
    type Key = K;
    fn of(facts: &Arc<PageFacts>) -> Self {
        Self::of(facts.clone())
    }
}

/// Types that a source may return, for keys of type `K`.
#[diagnostic::on_unimplemented(
    message = "a source can't return `{Self}`",
    label = "not a `Result<Vec<Found<{K}>>, E>`",
    note = "return `Result<Vec<optimus::Found<{K}>>, E>`, with the key of `Page<{K}>`, where `E` \
            implements `std::error::Error` (and `Send + Sync`), or is a `String`, or converts into \
            `Box<dyn std::error::Error + Send + Sync>`"
)]
pub trait FindsRows<K> {
    /// Returns the rows.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn rows(self) -> Result<Vec<Found<K>>, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<K, R: TaskResult<Output = Vec<Found<K>>>> FindsRows<K> for R {
    fn rows(self) -> Result<Vec<Found<K>>, BoxError> {
        self.into_result()
    }
}

/// Returns the rows of a page without their types.
///
/// # Errors
/// Returns the error of the function, or what is wrong with the page.
pub fn found_of<K: Serialize + DeserializeOwned, R: FindsRows<K>>(
    returned: R,
    facts: &PageFacts,
) -> Result<FoundPage, BoxError> {
    Ok(found_rows(returned.rows()?, facts)?)
}

/// What `before` may return.
#[diagnostic::on_unimplemented(
    message = "`before` of a source can't return `{Self}`",
    label = "not a `Result<bool, E>` or `Result<Option<u32>, E>`",
    note = "return `Result<bool, E>`: whether the row still needs its task; or \
            `Result<Option<u32>, E>`: how often it has failed, `None` if it needs no task any more"
)]
pub trait Stands {
    /// Returns whether the row needs its task.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn standing(self) -> Result<Standing, BoxError>;
}

/// The values that say whether a row needs its task.
pub trait IsStanding {
    /// Returns whether the row needs its task.
    fn standing(self) -> Standing;
}

impl IsStanding for bool {
    fn standing(self) -> Standing {
        if self { Standing::Due } else { Standing::Done }
    }
}

impl IsStanding for Option<u32> {
    fn standing(self) -> Standing {
        self.map_or(Standing::Done, Standing::Failed)
    }
}

#[diagnostic::do_not_recommend]
impl<R: TaskResult<Output: IsStanding>> Stands for R {
    fn standing(self) -> Result<Standing, BoxError> {
        Ok(self.into_result()?.standing())
    }
}

/// Returns whether the row needs its task.
///
/// # Errors
/// Returns the error of the function.
pub fn standing_of<R: Stands>(returned: R) -> Result<Standing, BoxError> {
    returned.standing()
}

/// What `on_failure` may return.
#[diagnostic::on_unimplemented(
    message = "`on_failure` of a source can't return `{Self}`",
    label = "not a `Result<(), E>`",
    note = "return `()` or `Result<(), E>`"
)]
pub trait NotesFailure {
    /// Returns whether the failure is stored.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn noted(self) -> Result<(), BoxError>;
}

#[diagnostic::do_not_recommend]
impl<R: TaskResult<Output = ()>> NotesFailure for R {
    fn noted(self) -> Result<(), BoxError> {
        self.into_result()
    }
}

/// Returns whether the failure is stored.
///
/// # Errors
/// Returns the error of the function.
pub fn noted<R: NotesFailure>(returned: R) -> Result<(), BoxError> {
    returned.noted()
}

/// What the function of `archive(…)` may return.
#[diagnostic::on_unimplemented(
    message = "the function of `archive` can't return `{Self}`",
    label = "not a `Result<u64, E>`",
    note = "return `Result<u64, E>`: how many rows were moved"
)]
pub trait Archives {
    /// Returns how many rows were moved.
    ///
    /// # Errors
    /// Returns the error of the function.
    fn archived(self) -> Result<u64, BoxError>;
}

#[diagnostic::do_not_recommend]
impl<R: TaskResult<Output = u64>> Archives for R {
    fn archived(self) -> Result<u64, BoxError> {
        self.into_result()
    }
}

/// Returns how many rows were moved.
///
/// # Errors
/// Returns the error of the function.
pub fn archived<R: Archives>(returned: R) -> Result<u64, BoxError> {
    returned.archived()
}

/// The values of `over = …`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of tables",
    label = "not a list of names",
    note = "`over` is an array, a slice or a `Vec` of texts, such as `over = [\"a\", \"b\"]` or \
            `over = tables()`"
)]
pub trait Tables {
    /// Returns the names.
    fn names(self) -> Vec<String>;
}

#[diagnostic::do_not_recommend]
impl<T: IntoIterator<Item: ToString>> Tables for T {
    fn names(self) -> Vec<String> {
        self.into_iter().map(|name| name.to_string()).collect()
    }
}

/// Returns the names of the tables.
pub fn table_names<T: Tables>(tables: T) -> Vec<String> {
    tables.names()
}
