//! What a run of gathered calls returns: [`Each`].

use crate::control_words::BoxError;

/// The results of the calls of a run, for a task that [gathers](crate::TaskOptions::gather) them:
/// one for each call, in the order of the list, or the same for all.
///
/// Each call has its own result, so each handle returns its own value, and each call stores only
/// that. A result that is an error makes that call fail, and the others succeed: the call has its
/// own retries, and [`Retry`](crate::Retry), [`Fatal`](crate::Fatal), [`Snooze`](crate::Snooze) and
/// [`Cancel`](crate::Cancel) mean this call alone.
///
/// ```
/// # use optimus_core as optimus;
/// use optimus::Each;
///
/// let lengths: Each<usize> = ["a", "bc"].iter().map(|text| text.len()).collect();
/// let numbers: Each<u8> = ["1", "x"].iter().map(|text| text.parse::<u8>()).collect();
/// let results = numbers.into_results();
/// assert_eq!(*results[0].as_ref().unwrap(), 1);
/// assert!(results[1].is_err());
/// # drop(lengths);
/// ```
///
/// If the number of results is not that of the calls, the run fails.
#[derive(Debug)]
#[must_use = "the results are those of the calls only if the handler returns them"]
pub struct Each<T>(Values<T>);

#[derive(Debug)]
enum Values<T> {
    Same(T),
    Own(Vec<Result<T, BoxError>>),
}

impl<T> Each<T> {
    /// Returns this value for all calls. Each of them stores it.
    pub fn same(value: T) -> Self {
        Self(Values::Same(value))
    }

    /// Returns the results in the order of the calls; only one if it is the same for all.
    pub fn into_results(self) -> Vec<Result<T, BoxError>> {
        match self.0 {
            Values::Same(value) => vec![Ok(value)],
            Values::Own(results) => results,
        }
    }

    /// Returns the result of a run of one call.
    ///
    /// # Errors
    /// The error of that call, or an error that states how many results there are.
    pub fn into_single(self) -> Result<T, BoxError> {
        let mut results = self.into_results();
        match (results.pop(), results.len()) {
            (Some(result), 0) => result,
            (_, more) => Err(miscounted(1, if more == 0 { 0 } else { more + 1 }).into()),
        }
    }

    /// Converts the values of the calls that succeed.
    pub fn map<U>(self, mut convert: impl FnMut(T) -> U) -> Each<U> {
        Each(match self.0 {
            Values::Same(value) => Values::Same(convert(value)),
            Values::Own(results) => {
                Values::Own(results.into_iter().map(|result| result.map(&mut convert)).collect())
            }
        })
    }

    /// Returns the value that is the same for all calls, or else the result of each.
    pub(crate) fn split(self) -> Result<T, Vec<Result<T, BoxError>>> {
        match self.0 {
            Values::Same(value) => Ok(value),
            Values::Own(results) => Err(results),
        }
    }
}

/// Returns why the results are not those of the calls.
#[doc(hidden)]
pub fn miscounted(calls: usize, results: usize) -> String {
    format!(
        "the handler returned {results} results for {calls} calls; return one for each call, in \
         the order of the list"
    )
}

impl<T> FromIterator<T> for Each<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self(Values::Own(values.into_iter().map(Ok).collect()))
    }
}

impl<T, E: Into<BoxError>> FromIterator<Result<T, E>> for Each<T> {
    fn from_iter<I: IntoIterator<Item = Result<T, E>>>(results: I) -> Self {
        Self(Values::Own(results.into_iter().map(|result| result.map_err(Into::into)).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_run_of_one_call_is_that_of_the_call() {
        assert_eq!(Each::same(7).into_single().unwrap(), 7);
        assert_eq!(Each::from_iter([8]).into_single().unwrap(), 8);
        let refused: Each<u8> = [Err::<u8, _>("no")].into_iter().collect();
        assert_eq!(refused.into_single().unwrap_err().to_string(), "no");
        for (results, text) in [(vec![], "0 results for 1 calls"), (vec![1, 2], "2 results")] {
            let problem = Each::from_iter(results).into_single().unwrap_err().to_string();
            assert!(problem.contains(text), "{problem}");
        }
    }

    #[test]
    fn a_conversion_keeps_the_order_and_the_errors() {
        let each: Each<u8> = [Ok(1), Err("no"), Ok(3)].into_iter().collect();
        let texts: Vec<_> = each.map(|n| n.to_string()).into_results();
        let texts: Vec<_> = texts.into_iter().map(|text| text.map_err(|e| e.to_string())).collect();
        assert_eq!(texts, [Ok("1".into()), Err("no".into()), Ok("3".into())]);
        assert_eq!(Each::same(1).map(|n| n + 1).into_single().unwrap(), 2);
    }
}
