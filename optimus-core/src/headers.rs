//! Headers: names with texts that a call passes to its handler in addition to the arguments.

use std::collections::BTreeMap;

use crate::{Error, id::validate_name};

/// The headers of a task, by name.
pub(crate) type Headers = BTreeMap<String, String>;

/// The maximum number of headers of a task.
const COUNT_MAX: usize = 32;

/// The maximum number of bytes of all names and values. Each claim passes them through Lua.
const BYTES_MAX: usize = 4 * 1024;

/// Refuses headers that can't be stored.
pub(crate) fn check(headers: &Headers, task: &str) -> Result<(), Error> {
    let refuse = |what: String| Err(Error::invalid(format!("task {task:?}: {what}")));
    if headers.len() > COUNT_MAX {
        return refuse(format!("it has {} headers; the limit is {COUNT_MAX}", headers.len()));
    }
    for name in headers.keys() {
        if let Err(problem) = validate_name(name) {
            return refuse(format!("the name of a header: {problem}"));
        }
    }
    let bytes = bytes(headers);
    if bytes > BYTES_MAX {
        return refuse(format!(
            "its headers take {bytes} bytes; the limit is {BYTES_MAX}; pass long texts as \
             arguments, or store them elsewhere and pass a reference"
        ));
    }
    Ok(())
}

/// Returns the bytes of all names and values.
pub(crate) fn bytes(headers: &Headers) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(headers: impl IntoIterator<Item = (String, String)>) -> Option<String> {
        let problem = check(&headers.into_iter().collect(), "mail").err()?;
        assert!(problem.is_invalid(), "{problem}");
        Some(problem.to_string())
    }

    #[test]
    fn headers_are_accepted_up_to_their_limits() {
        let many = |count: usize| (0..count).map(|n| (format!("h{n}"), String::new()));
        assert_eq!(problem(many(32)), None);
        assert!(problem(many(33)).unwrap().contains("33 headers"));
        let long = |bytes: usize| [("abcd".to_owned(), "x".repeat(bytes - 4))];
        assert_eq!(problem(long(4096)), None);
        assert!(problem(long(4097)).unwrap().contains("4097 bytes"));
        for name in ["", "a b", "a\n", "ü"] {
            let text = problem([(name.to_owned(), String::new())]).unwrap();
            assert!(text.contains("task \"mail\": the name of a header"), "{text}");
        }
        assert_eq!(problem([("X-Tenant_1.a".to_owned(), "any\n\0 ü".to_owned())]), None);
    }
}
