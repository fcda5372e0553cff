//! The parameters after the `?` of a URL: [`Parameters`].

use std::{borrow::Cow, collections::BTreeMap};

/// The parameters for every server. `protocol` is for URLs that other programs read, too.
const ALWAYS: [&str; 4] = ["user_file", "password_file", "db", "protocol"];
const OF_TLS: [&str; 5] = ["ca", "cert", "key", "server_name", "verify"];
/// The parameters for a socket, which has no user and password before an `@`.
const OF_UNIX: [&str; 2] = ["user", "pass"];

/// The parameters that are not printed.
const SECRET: [&str; 2] = OF_UNIX;

/// The kinds of schemes, which have different parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Tcp,
    Tls,
    Unix,
}

/// The parameters of a URL. Each is known and occurs once.
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Checks the parameters of a URL; the error names the wrong one.
    pub(super) fn of<'a>(
        pairs: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
        scheme: Scheme,
    ) -> Result<Self, String> {
        let known: Vec<&str> = match scheme {
            Scheme::Tcp => ALWAYS.to_vec(),
            Scheme::Tls => [&OF_TLS[..], &ALWAYS].concat(),
            Scheme::Unix => [&OF_UNIX[..], &ALWAYS].concat(),
        };
        let pairs: Vec<_> = pairs.collect();
        // An `@` in the query may mean that the `?` is part of a password.
        let is_unexpected =
            pairs.iter().any(|(name, value)| name.contains('@') || value.contains('@'));
        let mut parameters = BTreeMap::new();
        for (name, value) in pairs {
            if !known.contains(&&*name) {
                let named = if is_unexpected || !is_plain(&name) { "one" } else { &*name };
                return Err(unknown(named, scheme, &known));
            }
            if value.is_empty() {
                return Err(format!("its parameter {name} is empty"));
            }
            if parameters.insert(name.clone().into_owned(), value.into_owned()).is_some() {
                return Err(format!("its parameter {name} is given twice"));
            }
        }
        Ok(Self(parameters))
    }

    /// Returns the value of a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns the number of the database, from the path or from the parameter.
    pub(super) fn db(&self, of_path: i64) -> Result<i64, String> {
        let Some(text) = self.get("db") else { return Ok(of_path) };
        let db = text.parse().map_err(|_| "its parameter db is not a number".to_owned())?;
        if of_path != 0 && of_path != db {
            return Err("its path and its parameter db name two databases".to_owned());
        }
        Ok(db)
    }

    /// Refuses unknown versions of the protocol. All connections use version 2.
    pub(super) fn check_protocol(&self) -> Result<(), String> {
        match self.get("protocol") {
            None | Some("2" | "resp2" | "3" | "resp3") => Ok(()),
            Some(_) => Err("its parameter protocol is not resp2 or resp3".to_owned()),
        }
    }

    /// Returns the form that may be printed, with the `?`.
    pub(super) fn shown(&self) -> String {
        let mut shown = String::new();
        for (name, value) in &self.0 {
            let value =
                if SECRET.contains(&name.as_str()) || !is_plain(value) { "***" } else { value };
            shown += if shown.is_empty() { "?" } else { "&" };
            shown.extend([name.as_str(), "=", value]);
        }
        shown
    }
}

fn unknown(name: &str, scheme: Scheme, known: &[&str]) -> String {
    if OF_TLS.contains(&name) && scheme == Scheme::Tcp {
        return format!("its parameter {name} is for TLS; write rediss:// in place of redis://");
    }
    format!("its parameter {name} is not known; it can be {}", known.join(", "))
}

/// Returns whether the text is safe to print. A misplaced password would have other characters next
/// to it.
fn is_plain(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || " ._-+~,/\\".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&'static str, &'static str)], of: Scheme) -> Result<Parameters, String> {
        let pairs = pairs.iter().map(|(name, value)| (Cow::from(*name), Cow::from(*value)));
        Parameters::of(pairs, of)
    }

    #[test]
    fn an_unknown_parameter_is_refused_with_the_list_of_known_ones() {
        let problem = read(&[("insecure", "true")], Scheme::Tls).err().unwrap();
        assert!(problem.contains("insecure is not known"), "{problem}");
        for known in OF_TLS.iter().chain(&ALWAYS) {
            assert!(problem.contains(known), "{known}: {problem}");
            assert!(read(&[(known, "x")], Scheme::Tls).is_ok(), "{known}");
        }
        let problem = read(&[("verify", "none")], Scheme::Tcp).err().unwrap();
        assert!(problem.contains("rediss://"), "{problem}");
    }

    #[test]
    fn a_text_that_may_be_a_password_is_not_printed() {
        for pairs in [&[("user:5ecret@host", "")][..], &[("5ecret", ""), ("x@host", "")]] {
            let problem = read(pairs, Scheme::Tcp).err().unwrap();
            assert!(!problem.contains("5ecret"), "{problem}");
        }
        let shown = |pairs| read(pairs, Scheme::Unix).unwrap().shown();
        assert_eq!(shown(&[("pass", "5ecret"), ("db", "2")]), "?db=2&pass=***");
        assert_eq!(shown(&[("user_file", "a?pass=5ecret")]), "?user_file=***");
        assert_eq!(shown(&[("user_file", "/run/redis user")]), "?user_file=/run/redis user");
        assert_eq!(shown(&[]), "");
    }

    #[test]
    fn an_empty_or_contradictory_parameter_is_refused() {
        for pairs in [&[("ca", "")][..], &[("ca", "a"), ("ca", "b")]] {
            assert!(read(pairs, Scheme::Tls).is_err(), "{pairs:?}");
        }
        let db = |text| read(&[("db", text)], Scheme::Tcp).unwrap();
        assert_eq!(db("3").db(0), Ok(3));
        assert_eq!(db("3").db(3), Ok(3));
        assert!(db("3").db(4).unwrap_err().contains("two databases"));
        assert!(db("x").db(0).unwrap_err().contains("not a number"));
        let protocol = |text| read(&[("protocol", text)], Scheme::Tcp).unwrap();
        assert!(protocol("resp3").check_protocol().is_ok());
        assert!(protocol("resp4").check_protocol().is_err());
    }
}
