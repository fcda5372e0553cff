//! The server that a URL names, and the settings for it: [`Place`].

use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use redis::{ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo};

use super::parameters::{Parameters, Scheme};
#[cfg(feature = "tls")]
use super::tls::Tls;

/// A server, as a URL describes it.
pub(super) struct Place {
    pub(super) address: Address,
    /// The database, and the user and password of the URL.
    pub(super) settings: RedisConnectionInfo,
    pub(super) files: LoginFiles,
    /// The URL without its secrets, for messages.
    pub(super) shown: String,
    is_probed: AtomicBool,
}

/// The address of the server.
pub(super) enum Address {
    Tcp(String, u16),
    #[cfg(feature = "tls")]
    Tls(String, u16, Tls),
    Unix(PathBuf),
}

/// Files with a user and a password, whose content may change.
#[derive(Clone, Default)]
pub(super) struct LoginFiles {
    pub(super) user: Option<PathBuf>,
    pub(super) password: Option<PathBuf>,
}

impl Place {
    /// Reads the URL of a server. The error describes what is wrong, without the URL.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let mut parsed = redis::parse_redis_url(url).ok_or_else(|| unreadable(url))?;
        if parsed.fragment().is_some() {
            return Err(
                "it has a #fragment; write verify=none in place of #insecure, and %23 for a \
                        # in a password"
                    .to_owned(),
            );
        }
        let scheme_text = parsed.scheme().to_owned();
        let scheme = match &*scheme_text {
            "rediss" | "valkeys" => Scheme::Tls,
            "redis" | "valkey" => Scheme::Tcp,
            _ => Scheme::Unix,
        };
        if scheme == Scheme::Tls && !cfg!(feature = "tls") {
            return Err(
                "TLS is the feature `tls`, which is not enabled; enable it, or connect to \
                        redis://… through a TLS tunnel"
                    .to_owned(),
            );
        }
        let parameters = Parameters::of(parsed.query_pairs(), scheme)?;
        parameters.check_protocol()?;
        parsed.set_query(None);
        if scheme == Scheme::Tls {
            parsed.set_scheme("redis").map_err(|()| "it is not a URL")?;
        }
        let info = parsed.into_connection_info().map_err(|problem| match problem.to_string() {
            text if text.contains("database number") => {
                "its path is not the number of a database; write /0, or nothing".to_owned()
            }
            text => text,
        })?;
        let db = parameters.db(info.redis_settings().db())?;
        // All answers are read in the form of protocol version 2, which is used if the query is
        // empty.
        let mut settings = info.redis_settings().clone().set_db(db);
        if let Some(user) = parameters.get("user") {
            settings = settings.set_username(user);
        }
        if let Some(password) = parameters.get("pass") {
            settings = settings.set_password(password);
        }
        let address = address(info.addr(), scheme, &parameters)?;
        let files = files(&settings, &parameters)?;
        let shown = address.shown(&scheme_text, info.redis_settings().db()) + &parameters.shown();
        Ok(Self { address, settings, files, shown, is_probed: AtomicBool::new(false) })
    }

    /// Returns whether this is the first call: each server is probed for its protocol once.
    pub(super) fn is_first_probe(&self) -> bool {
        !self.is_probed.swap(true, Ordering::Relaxed)
    }

    /// Returns whether both are the same database.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same_address = match (&self.address, &other.address) {
            (Address::Unix(path), Address::Unix(other)) => path == other,
            (one, other) => one.host().is_some() && one.host() == other.host(),
        };
        same_address && self.settings.db() == other.settings.db()
    }

    /// Returns whether the URL has credentials, or names files with them.
    pub(super) fn names_credentials(&self) -> bool {
        let LoginFiles { user, password } = &self.files;
        user.is_some()
            || password.is_some()
            || self.settings.username().is_some()
            || self.settings.password().is_some()
    }
}

fn address(
    addr: &ConnectionAddr,
    scheme: Scheme,
    #[cfg_attr(not(feature = "tls"), expect(unused_variables, reason = "those of TLS alone"))]
    parameters: &Parameters,
) -> Result<Address, String> {
    Ok(match (addr, scheme) {
        #[cfg(feature = "tls")]
        (ConnectionAddr::Tcp(host, port), Scheme::Tls) => {
            Address::Tls(host.clone(), *port, Tls::of(parameters, host)?)
        }
        (ConnectionAddr::Tcp(host, port), _) => Address::Tcp(host.clone(), *port),
        (ConnectionAddr::Unix(path), _) => Address::Unix(path.clone()),
        _ => return Err("it leads to no server".to_owned()),
    })
}

/// Returns the files for the user and the password. Each of the two has one source only.
fn files(settings: &RedisConnectionInfo, parameters: &Parameters) -> Result<LoginFiles, String> {
    let file = |name: &str| parameters.get(name).map(PathBuf::from);
    let files = LoginFiles { user: file("user_file"), password: file("password_file") };
    if files.user.is_some() && settings.username().is_some() {
        return Err("it names a user, and user_file another; leave one out".to_owned());
    }
    if files.password.is_some() && settings.password().is_some() {
        return Err("it has a password, and password_file another; leave one out".to_owned());
    }
    if files.user.is_some() && files.password.is_none() && settings.password().is_none() {
        return Err("it has user_file and no password; add password_file".to_owned());
    }
    Ok(files)
}

impl Address {
    fn host(&self) -> Option<(&str, u16)> {
        match self {
            Self::Tcp(host, port) => Some((host, *port)),
            #[cfg(feature = "tls")]
            Self::Tls(host, port, _) => Some((host, *port)),
            Self::Unix(_) => None,
        }
    }

    fn shown(&self, scheme: &str, db: i64) -> String {
        let place = match (self, self.host()) {
            (Self::Unix(path), _) => return redact(&format!("{scheme}://{}", path.display())),
            (_, Some((host, port))) if host.contains(':') => format!("[{host}]:{port}"),
            (_, Some((host, port))) => format!("{host}:{port}"),
            (_, None) => String::new(),
        };
        let db = if db == 0 { String::new() } else { format!("/{db}") };
        format!("{scheme}://{place}{db}")
    }
}

/// Hides everything that may be a password: the text before the last `@` except the scheme, and the
/// query. This is for texts that are not URLs; URLs are [shown](Place::shown).
pub(super) fn redact(url: &str) -> String {
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '+');
    let scheme = url.split_once("://").map(|(scheme, _)| scheme).filter(|text| is_scheme(text));
    let (scheme, rest) = url.split_at(scheme.map_or(0, |scheme| scheme.len() + "://".len()));
    let (secret, place) = rest.rsplit_once('@').unwrap_or(("", rest));
    if secret.contains('?') {
        return format!("{scheme}***");
    }
    // Without an `@`, the text after a `:` may be a password, unless it is a port.
    if !(scheme == "unix://" || has_port_or_none(place)) {
        let secret = if secret.is_empty() { "" } else { "***@" };
        let shown = place.split(':').next().unwrap_or_default();
        return format!("{scheme}{secret}{shown}:***");
    }
    let (place, query) = place.split_once('?').map_or((place, ""), |(place, _)| (place, "?***"));
    let secret = if secret.is_empty() { "" } else { "***@" };
    format!("{scheme}{secret}{place}{query}")
}

/// Returns whether the text after the last `:` of a host, if there is one, is a port.
fn has_port_or_none(place: &str) -> bool {
    let authority = place.split(['/', '?']).next().unwrap_or_default();
    authority.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_ok())
}

/// Returns why a text is not a URL, for the cases that are frequent.
fn unreadable(url: &str) -> String {
    let place = url.split_once("://").map_or(url, |(_, rest)| rest);
    if place.contains('@') {
        return "it is not a URL; in a user or a password, write %23 for #, %2F for / and %3F for ?"
            .to_owned();
    }
    if has_port_or_none(place) {
        return "it is not a URL".to_owned();
    }
    "after the : there is no port, which is a number, and no password, which ends with an @"
        .to_owned()
}

#[cfg(test)]
#[path = "server_url_tests.rs"]
mod tests;
