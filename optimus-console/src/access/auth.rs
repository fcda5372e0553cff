//! How the console knows who sends a request: [`Auth`].

use axum::http::{HeaderMap, header, request::Parts};

use super::{
    base64,
    custom::CustomAuth,
    identity::{Identity, Role},
    origin::{Peer, check_local},
    secrets::Secrets,
    sessions::Sessions,
    trusted_header::TrustedHeader,
};
use crate::problem::Problem;

/// The name of [`Auth::Basic`].
pub(crate) const BASIC_AUTH: &str = "basic";

/// How the console knows who sends a request.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Auth {
    /// It does not, and so it answers only clients of its own machine, that name it as their host.
    /// They may do everything.
    #[default]
    None,
    /// By a token, which a browser exchanges for a cookie, and a program sends as
    /// `Authorization: Bearer …`.
    Token(Secrets),
    /// By a name and a password, for which the browser asks. Each request has both, so use TLS.
    Basic(Secrets),
    /// By a header of a proxy that has signed the user in.
    Header(TrustedHeader),
    /// By a function of the program; see [`Auth::custom`].
    Custom(CustomAuth),
}

impl Auth {
    /// Asks a function who sends a request; `None` lets nobody in. The function runs on a thread
    /// that may block, for 5 s at most, and a panic of it lets nobody in.
    ///
    /// ```
    /// use optimus_console::{Auth, Identity, Role};
    ///
    /// let auth = Auth::custom(|request| {
    ///     let user = request.extensions.get::<String>()?;
    ///     Some(Identity::new(user, Role::Operator).queues(["mail", "tenant-*"]))
    /// });
    /// # let _ = auth;
    /// ```
    pub fn custom(ask: impl Fn(&Parts) -> Option<Identity> + Send + Sync + 'static) -> Self {
        Self::Custom(CustomAuth::new(ask))
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Token(_) => "token",
            Self::Basic(_) => BASIC_AUTH,
            Self::Header(_) => "header",
            Self::Custom(_) => "custom",
        }
    }
}

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Authenticated {
    pub(crate) identity: Identity,
    /// Whether the request has a secret that no foreign page can let a browser send.
    pub(crate) is_explicit: bool,
    /// The session of the browser that has signed in.
    pub(crate) session: Option<String>,
}

/// Returns who sends a request; `None` if this is not known.
///
/// # Errors
/// A console without authentication does not answer other machines.
pub(crate) async fn authenticate(
    auth: &Auth,
    sessions: &Sessions,
    nobody: &str,
    parts: &Parts,
) -> Result<Option<Authenticated>, Problem> {
    let of = |identity| Authenticated { identity, is_explicit: false, session: None };
    Ok(match auth {
        Auth::None => {
            check_local(parts)?;
            Some(of(Identity::new(nobody, Role::Admin)))
        }
        Auth::Token(secrets) => {
            let token = credentials(&parts.headers, "bearer");
            match token {
                Some(token) => secrets
                    .owner(token, None)
                    .cloned()
                    .map(|identity| Authenticated { is_explicit: true, ..of(identity) }),
                None => sessions.cookie_of(&parts.headers).and_then(|id| {
                    let identity = sessions.find(id)?;
                    Some(Authenticated { session: Some(id.to_owned()), ..of(identity) })
                }),
            }
        }
        Auth::Basic(secrets) => {
            let pair = credentials(&parts.headers, "basic").and_then(base64::decode);
            let pair = pair.and_then(|pair| String::from_utf8(pair).ok());
            let pair = pair.as_deref().and_then(|pair| pair.split_once(':'));
            pair.and_then(|(name, secret)| secrets.owner(secret, Some(name))).cloned().map(of)
        }
        Auth::Header(trusted) => trusted.user_of(parts, Peer::of(parts)).map(of),
        Auth::Custom(custom) => custom.user_of(parts).await.map(of),
    })
}

/// Returns whether a request brings a token, known or not.
pub(crate) fn brings_token(headers: &HeaderMap) -> bool {
    credentials(headers, "bearer").is_some()
}

/// Returns what `Authorization` has after the name of this scheme.
fn credentials<'a>(headers: &'a HeaderMap, scheme: &str) -> Option<&'a str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
    let (named, rest) = value.split_once(' ')?;
    named.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}
