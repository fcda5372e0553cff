//! Users whom a proxy has signed in: [`TrustedHeader`].

use std::{collections::BTreeMap, net::IpAddr};

use axum::http::{HeaderName, request::Parts};

use super::{
    identity::{Identity, Role},
    origin::Peer,
};
use crate::ConsoleError;

/// The longest name of a user.
const NAME_BYTES_MAX: usize = 200;

/// A header in which a proxy names the user that it has signed in, such as `x-forwarded-user`.
/// Only these proxies are believed, so they must remove the header from what their clients send.
#[derive(Debug, Clone)]
pub struct TrustedHeader {
    header: HeaderName,
    proxies: Vec<IpAddr>,
    users: BTreeMap<String, Identity>,
    others: Option<Role>,
}

impl TrustedHeader {
    /// Believes this header of requests from these addresses. A proxy that connects to a unix
    /// socket is believed, too.
    ///
    /// # Errors
    /// [`ConsoleError::Header`] if no header can have the name.
    pub fn new(
        header: &str,
        proxies: impl IntoIterator<Item = IpAddr>,
    ) -> Result<Self, ConsoleError> {
        let name = HeaderName::try_from(header)
            .map_err(|_| ConsoleError::Header(format!("{header:?} is not the name of a header")))?;
        let proxies = proxies.into_iter().map(|proxy| proxy.to_canonical()).collect();
        Ok(Self { header: name, proxies, users: BTreeMap::new(), others: None })
    }

    /// Knows this user.
    pub fn user(mut self, identity: Identity) -> Self {
        self.users.insert(identity.name.clone(), identity);
        self
    }

    /// Gives all other users that the proxy names this role. Without it, they are not let in.
    pub fn others(mut self, role: Role) -> Self {
        self.others = Some(role);
        self
    }

    pub(super) fn user_of(&self, parts: &Parts, peer: Peer) -> Option<Identity> {
        let is_trusted = match peer {
            Peer::Unix => true,
            Peer::Address(address) => self.proxies.contains(&address),
            Peer::Unknown => false,
        };
        let mut values = parts.headers.get_all(&self.header).iter();
        let name = values.next().and_then(|value| value.to_str().ok()).map(str::trim)?;
        // Two values may be those of the client and of the proxy.
        if !is_trusted || values.next().is_some() || name.is_empty() || name.len() > NAME_BYTES_MAX
        {
            return None;
        }
        let known = self.users.get(name).cloned();
        known.or_else(|| self.others.map(|role| Identity::new(name, role)))
    }
}
