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

/// Returns whether the headers can be stored with this one in addition, which replaces an earlier
/// one of its name.
pub(crate) fn can_add(headers: &Headers, name: &str, value: &str) -> bool {
    let replaced = headers.get(name).map(|value| name.len() + value.len());
    let count = headers.len() + usize::from(replaced.is_none());
    let bytes = bytes(headers) - replaced.unwrap_or_default() + name.len() + value.len();
    count <= COUNT_MAX && bytes <= BYTES_MAX && validate_name(name).is_ok()
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
    fn a_header_can_be_added_exactly_if_the_headers_with_it_are_accepted() {
        let value = |bytes: usize| "x".repeat(bytes);
        for (names, size) in [(31, 1), (32, 1), (3, 4000), (3, 4100)] {
            let headers: Headers = (0..names).map(|n| (format!("h{n}"), value(1))).collect();
            for name in ["h1", "new", "a b", ""] {
                let with = headers.clone().into_iter().chain([(name.to_owned(), value(size))]);
                let accepted = problem(with).is_none();
                assert_eq!(
                    can_add(&headers, name, &value(size)),
                    accepted,
                    "{names} {size} {name:?}"
                );
            }
        }
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
