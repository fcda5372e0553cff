//! Where a request comes from: its peer, its host and its site.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::ConnectInfo,
    http::{HeaderMap, HeaderName, Version, header, request::Parts},
};

use crate::problem::Problem;

/// Headers that a proxy adds. A request with one of them comes from elsewhere.
const FORWARDED: [HeaderName; 4] = [
    header::FORWARDED,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
];

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Address(IpAddr),
    Unix,
    /// The server of the router does not say.
    Unknown,
}

impl Peer {
    pub(crate) fn of(parts: &Parts) -> Self {
        let known = parts.extensions.get::<Self>().copied();
        let told = || parts.extensions.get::<ConnectInfo<SocketAddr>>();
        known.unwrap_or_else(|| {
            told().map_or(Self::Unknown, |told| Self::Address(told.0.ip().to_canonical()))
        })
    }
}

/// Checks a request to a console without authentication: it must come from this machine, and name
/// it. A page of a foreign site whose name leads to this machine has the foreign name as its host.
pub(crate) fn check_local(parts: &Parts) -> Result<(), Problem> {
    let why = match Peer::of(parts) {
        Peer::Unknown => {
            "the server does not say who connects: serve the router with \
             `into_make_service_with_connect_info::<SocketAddr>()`"
        }
        Peer::Address(address) if !address.is_loopback() => "the client is on another machine",
        _ if FORWARDED.iter().any(|name| parts.headers.contains_key(name)) => {
            "a proxy has forwarded the request"
        }
        // nginx adds no header, and names the console as the host, unless it is told otherwise.
        _ if parts.version < Version::HTTP_11 => "it is HTTP/1.0, which proxies send",
        Peer::Unix => return Ok(()),
        Peer::Address(_) => match host_of(parts) {
            Some(host) if is_local(&host) => return Ok(()),
            _ => "its Host is not localhost, 127.0.0.1 or [::1]",
        },
    };
    Err(Problem::forbidden(format!(
        "this console has no authentication, so it answers this machine alone; {why}. Configure \
         authentication for others"
    )))
}

/// Checks the host of a request, if the console knows its hosts.
pub(crate) fn check_host(parts: &Parts, hosts: &[String]) -> Result<(), Problem> {
    let host = host_of(parts);
    let is_known = |host: &String| hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    if hosts.is_empty() || host.as_ref().is_some_and(is_known) {
        return Ok(());
    }
    let host = host.unwrap_or_default();
    Err(Problem::forbidden(format!("{host:?} is not a host of this console")))
}

/// Returns the host with its port, as the client has named it.
fn host_of(parts: &Parts) -> Option<String> {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, None) => parts.uri.authority()?.as_str(),
        _ => return None,
    };
    Some(host.to_ascii_lowercase())
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Checks that a page of the console itself sends an act. `Sec-Fetch-Site` can't be set by a page;
/// a browser without it sends `Origin`.
pub(crate) fn check_same_site(parts: &Parts) -> Result<(), Problem> {
    let headers = &parts.headers;
    if headers.contains_key("sec-fetch-site") {
        let is_own = only(headers, "sec-fetch-site") == Some("same-origin");
        return if is_own { Ok(()) } else { Err(foreign("Sec-Fetch-Site is not same-origin")) };
    }
    let origin = only(headers, "origin").map(str::to_ascii_lowercase);
    let Some(origin) = origin else {
        return Err(foreign("it has neither Sec-Fetch-Site nor Origin"));
    };
    let named = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    match (named, host_of(parts)) {
        (Some(named), Some(host)) if named == host => Ok(()),
        _ => Err(foreign("its Origin is not its Host")),
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    value.to_str().ok()
}

fn foreign(why: &str) -> Problem {
    Problem::forbidden(format!(
        "the act does not come from a page of this console: {why}. A program can send a token, \
         `Authorization: Bearer …`; to a console without authentication, it sends the address of \
         the console as `Origin`"
    ))
}
