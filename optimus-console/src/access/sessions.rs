//! Browsers that have signed in: [`Sessions`].

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, header};

use super::{
    identity::Identity,
    secrets::{Digest, hex},
};

/// How the name of the cookie begins.
const COOKIE: &str = "optimus_console_";
/// How many characters of the hash of the store it has.
const STORE_CHARS: usize = 12;
/// How long a session lasts, and how long it lasts without a request.
const LASTS: Duration = Duration::from_secs(12 * 3_600);
const IDLES: Duration = Duration::from_secs(2 * 3_600);
/// The most sessions. Of more, those that were used longest ago end.
const SESSIONS_MAX: usize = 1_000;

/// The most sessions of one identity, so that nobody ends those of others.
const OWN_MAX: usize = 100;

/// The sessions of one console. They end with it.
pub(crate) struct Sessions {
    sessions: Mutex<HashMap<Digest, Session>>,
    cookie: String,
}

struct Session {
    identity: Identity,
    begun: Instant,
    used: Instant,
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.begun) >= LASTS || now.duration_since(self.used) >= IDLES
    }
}

impl Sessions {
    /// Makes the sessions of the console of a store, whose address has no secrets, and a namespace.
    /// A browser sends the cookie of a host to all ports and paths of it, so consoles of other
    /// stores there have cookies of other names.
    pub(crate) fn of(address: &str, namespace: &str) -> Self {
        let mut hash = Digest::of(format!("{address}\n{namespace}").as_bytes()).to_hex();
        hash.truncate(STORE_CHARS);
        Self { sessions: Mutex::default(), cookie: format!("{COOKIE}{hash}") }
    }

    /// Returns the name of the cookie.
    pub(crate) fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Returns the value of the console's cookie. If there are several, a page of another host of
    /// the same site may have set one of them, so none counts.
    pub(crate) fn cookie_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let texts = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.split_once('='));
        let own = pairs.filter(|(name, _)| name.trim() == self.cookie);
        let mut values = own.map(|(_, value)| value.trim());
        values.next().filter(|_| values.next().is_none())
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Digest, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a session, and returns its secret id; `None` if the system has no random numbers.
    pub(crate) fn begin(&self, identity: Identity) -> Option<String> {
        let mut bytes = [0_u8; 32];
        getrandom::fill(&mut bytes).ok()?;
        let id = hex(bytes);
        let now = Instant::now();
        let mut sessions = self.open();
        sessions.retain(|_, session| !session.is_over(now));
        let own = sessions.values().filter(|session| session.identity == identity).count();
        if own >= OWN_MAX || sessions.len() >= SESSIONS_MAX {
            let ends = |session: &Session| own < OWN_MAX || session.identity == identity;
            let oldest = sessions.iter().filter(|(_, session)| ends(session));
            let oldest = oldest.min_by_key(|(_, session)| session.used);
            let oldest = oldest.map(|(id, _)| id.clone());
            oldest.and_then(|id| sessions.remove(&id));
        }
        sessions.insert(Digest::of(id.as_bytes()), Session { identity, begun: now, used: now });
        Some(id)
    }

    /// Returns whose session this is.
    pub(crate) fn find(&self, id: &str) -> Option<Identity> {
        // The hash is looked up, so the time of the look says nothing about the id.
        let (id, now) = (Digest::of(id.as_bytes()), Instant::now());
        let mut sessions = self.open();
        let session = sessions.get_mut(&id)?;
        if session.is_over(now) {
            sessions.remove(&id);
            return None;
        }
        session.used = now;
        Some(session.identity.clone())
    }

    /// Returns whether the session is there, which is no use of it.
    pub(crate) fn has(&self, id: &str) -> bool {
        let session = self.open();
        let session = session.get(&Digest::of(id.as_bytes()));
        session.is_some_and(|session| !session.is_over(Instant::now()))
    }

    pub(crate) fn end(&self, id: &str) {
        self.open().remove(&Digest::of(id.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::Role;

    fn sessions() -> Sessions {
        Sessions::of("redis://host:6379", "shop")
    }

    fn ann() -> Identity {
        Identity::new("ann", Role::Admin)
    }

    #[test]
    fn a_session_ends_when_it_is_told_to_and_its_id_is_not_kept() {
        let sessions = sessions();
        let id = sessions.begin(ann()).unwrap();
        let other = sessions.begin(ann()).unwrap();
        assert_eq!(sessions.find(&id), Some(ann()));
        sessions.end(&id);
        assert_eq!(sessions.find(&id), None);
        assert_eq!(sessions.find(&other), Some(ann()));
        assert_eq!(sessions.find(&"0".repeat(64)), None);
    }

    #[test]
    fn there_are_never_more_sessions_than_the_limit() {
        let sessions = sessions();
        let person = |number: usize| Identity::new(number.to_string(), Role::Viewer);
        let ids: Vec<String> =
            (0..SESSIONS_MAX + 5).map(|number| sessions.begin(person(number)).unwrap()).collect();
        assert_eq!(sessions.open().len(), SESSIONS_MAX);
        assert_eq!(sessions.find(ids.last().unwrap()), Some(person(SESSIONS_MAX + 4)));
    }

    #[test]
    fn nobody_ends_the_sessions_of_others() {
        let sessions = sessions();
        let bob = sessions.begin(Identity::new("bob", Role::Viewer)).unwrap();
        for _ in 0..SESSIONS_MAX + 5 {
            sessions.begin(ann()).unwrap();
        }
        assert_eq!(sessions.open().len(), OWN_MAX + 1);
        assert!(sessions.find(&bob).is_some());
    }

    #[test]
    fn a_session_that_was_not_used_for_long_is_over() {
        let session = |begun, used| {
            let now = Instant::now() + LASTS;
            let ago = |time| now.checked_sub(time).expect("the clock is not younger");
            Session { identity: ann(), begun: ago(begun), used: ago(used) }.is_over(now)
        };
        assert!(!session(LASTS / 2, Duration::ZERO));
        assert!(session(LASTS, Duration::ZERO));
        assert!(session(IDLES, IDLES));
    }

    #[test]
    fn two_cookies_of_the_same_name_count_as_none() {
        let sessions = sessions();
        let of = |texts: &[&str]| {
            let mut headers = HeaderMap::new();
            for text in texts {
                let text = text.replace("own", sessions.cookie());
                headers.append(header::COOKIE, HeaderValue::from_str(&text).unwrap());
            }
            sessions.cookie_of(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["a=1; own=x; b=2"]).as_deref(), Some("x"));
        assert_eq!(of(&["own=x; own=y"]), None);
        assert_eq!(of(&["own=x", "own=x"]), None);
        assert_eq!(of(&["xown=x"]), None);
    }

    #[test]
    fn consoles_of_other_stores_or_namespaces_have_cookies_of_other_names() {
        let name =
            |address: &str, namespace: &str| Sessions::of(address, namespace).cookie().to_owned();
        let own = name("redis://host:6379", "shop");
        assert_eq!(own, sessions().cookie(), "it is the same after a restart");
        assert_ne!(own, name("redis://host:6379", "bank"));
        assert_ne!(own, name("redis://host:6379/1", "shop"));
        assert!(own.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{own}");
    }
}
