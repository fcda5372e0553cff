//! The environment variables that clients and workers read, and those that have no effect. This
//! module is for the other Optimus crates and is not public API.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    sync::{Mutex, PoisonError},
};

use crate::error::Error;

/// The URL of the store; else [`URL_ELSE`].
pub const URL: &str = "OPTIMUS_URL";
pub const URL_ELSE: &str = "REDIS_URL";
pub const NAMESPACE: &str = "OPTIMUS_NAMESPACE";
pub const WORKER_NAME: &str = "OPTIMUS_WORKER_NAME";
pub const QUEUES: &str = "OPTIMUS_QUEUES";
pub const CONCURRENCY: &str = "OPTIMUS_CONCURRENCY";
pub const LOG_EACH: &str = "OPTIMUS_LOG_EACH";
pub const METRICS: &str = "OPTIMUS_METRICS";
/// Whether the command line replaces secrets.
pub const REDACT: &str = "OPTIMUS_REDACT";
/// Every variable that clients, workers or the command line read.
const KNOWN: [&str; 9] =
    [URL, URL_ELSE, NAMESPACE, WORKER_NAME, QUEUES, CONCURRENCY, LOG_EACH, METRICS, REDACT];
/// The warnings that this process has logged.
static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// The beginning of the names of all variables of Optimus.
const PREFIX: &str = "OPTIMUS_";

/// Returns the URL of the store. `set` returns the value of a variable that is set and not empty;
/// `unknown` are the variables of [`unknown`], one of which may be meant.
///
/// # Errors
/// [`Error::is_invalid`] if neither variable is set.
pub fn url(set: impl Fn(&str) -> Option<String>, unknown: &[String]) -> Result<String, Error> {
    let given = set(URL).or_else(|| set(URL_ELSE));
    given.map(|url| url.trim().to_owned()).ok_or_else(|| {
        let meant = unknown.iter().find(|name| nearest(name) == Some(URL));
        let meant = meant.map_or_else(String::new, |name| format!("; {name} is misspelt"));
        Error::invalid(format!(
            "the URL of Redis is not set: set {URL} (or {URL_ELSE}), for example \
             {URL}=redis://127.0.0.1/{meant}"
        ))
    })
}

/// Checks that each variable is text. `value` returns that of a variable.
///
/// # Errors
/// [`Error::is_invalid`] names the one that is not.
pub fn check_text(value: impl Fn(&str) -> Option<OsString>) -> Result<(), Error> {
    let is_no_text = |name: &&str| value(name).is_some_and(|value| value.to_str().is_none());
    match KNOWN.into_iter().find(is_no_text) {
        Some(name) => Err(Error::invalid(format!("the value of {name} is not UTF-8"))),
        None => Ok(()),
    }
}

/// Returns the names that begin like those of Optimus and that it does not read.
pub fn unknown(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let is_unknown = |name: &String| name.starts_with(PREFIX) && !KNOWN.contains(&name.as_str());
    names.into_iter().filter(is_unknown).collect()
}

/// Returns the warning about such a variable.
pub fn without_effect(name: &str) -> String {
    match nearest(name) {
        Some(meant) => format!("{name} has no effect: did you mean {meant}?"),
        None => format!("{name} has no effect: Optimus only reads {}", KNOWN.join(", ")),
    }
}

/// Returns whether this process has not logged the warning before. A client and a worker of one
/// program both read the environment.
pub fn is_new(warning: &str) -> bool {
    WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.to_owned())
}

/// Returns the names of all variables of the process.
pub fn names() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, _)| name.into_string().ok())
}

/// Returns the known variable that is probably meant.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix(PREFIX)?;
    let words = KNOWN.into_iter().filter_map(|known| known.strip_prefix(PREFIX));
    let meant = nearest_word(name, words)?;
    KNOWN.into_iter().find(|known| known.strip_prefix(PREFIX) == Some(meant))
}

/// Returns the word that is probably meant by this one.
pub fn nearest_word<'a>(name: &str, words: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let near = words.map(|word| (distance(name, word), word));
    let near = near.filter(|(distance, word)| *distance <= word.len().div_ceil(3).min(3));
    near.min_by_key(|(distance, _)| *distance).map(|(_, word)| word)
}

/// Returns the number of letters to insert, delete or replace between two words.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn a_value_that_is_no_text_is_named() {
        use std::os::unix::ffi::OsStringExt;

        let value = |name: &str| (name == URL).then(|| OsString::from_vec(vec![b'a', 0xFF]));
        let problem = check_text(value).unwrap_err();
        assert!(problem.is_invalid() && problem.to_string().contains(URL), "{problem}");
        assert!(check_text(|_| Some("text".into())).is_ok() && check_text(|_| None).is_ok());
    }

    #[test]
    fn a_warning_is_new_once_in_a_process() {
        let [first, second, other] = ["X_A is unknown", "X_A is unknown", "X_B"].map(is_new);
        assert!(first && !second && other);
    }

    #[test]
    fn a_misspelt_variable_names_the_one_that_is_meant_and_others_all() {
        let names = ["PATH", "OPTIMUS_URL", "OPTIMUS_NAMESPCE", "OPTIMUS_COLOUR"];
        let unknown = unknown(names.map(str::to_owned));
        assert_eq!(unknown, ["OPTIMUS_NAMESPCE", "OPTIMUS_COLOUR"]);
        let [misspelt, other] = [0, 1].map(|at| without_effect(&unknown[at]));
        assert!(misspelt.ends_with("did you mean OPTIMUS_NAMESPACE?"), "{misspelt}");
        assert!(other.contains("reads OPTIMUS_URL, REDIS_URL, OPTIMUS_NAMESPACE"), "{other}");
        let problem = url(|_| None, &["OPTIMUS_URI".to_owned()]).unwrap_err().to_string();
        assert!(problem.ends_with("OPTIMUS_URI is misspelt"), "{problem}");
    }
}
