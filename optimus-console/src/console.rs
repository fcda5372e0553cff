//! The console, before it is served: [`Console`].

use std::sync::Arc;

use axum::Router;
use optimus_core::Client;

use crate::{
    ConsoleError,
    access::{Auth, Payloads, Role, Sessions},
    api, carrying, guard,
    sampling::Sampling,
    shared::Shared,
    stats_of_all::StatsOfAll,
};

/// How many browsers may listen to events at once, unless it is set.
const LISTENERS_DEFAULT: usize = 256;

/// The web console of a namespace.
///
/// ```
/// # async fn doc(client: optimus_core::Client) -> Result<(), Box<dyn std::error::Error>> {
/// use optimus_console::{Auth, Console, Identity, Role, Secrets};
///
/// let ann = Identity::new("ann", Role::Operator);
/// let secrets = Secrets::new().add(ann, "a secret made at random")?;
/// let console = Console::new(client).auth(Auth::Token(secrets));
/// let app: axum::Router = axum::Router::new().nest_service("/admin/tasks", console.router()?);
/// # let _ = app;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Console {
    client: Client,
    auth: Auth,
    nobody: String,
    payloads: [Option<Payloads>; 3],
    hosts: Vec<String>,
    trusts_prefix: bool,
    listeners_max: usize,
}

impl Console {
    /// Makes a console of the namespace of this client. Without more, it has no authentication, so
    /// it answers only clients of its own machine.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            auth: Auth::None,
            nobody: "console".to_owned(),
            payloads: [None; 3],
            hosts: Vec::new(),
            trusts_prefix: false,
            listeners_max: LISTENERS_DEFAULT,
        }
    }

    /// Sets how the console knows who sends a request.
    pub fn auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

    /// Sets under which name acts are written down if there is no authentication.
    pub fn operator(mut self, name: impl Into<String>) -> Self {
        self.nobody = name.into();
        self
    }

    /// Sets how arguments and results are shown to people with this role. Without it, they are
    /// redacted in a console without authentication, and hidden in others.
    pub fn payloads(mut self, role: Role, payloads: Payloads) -> Self {
        self.payloads[role as usize] = Some(payloads);
        self
    }

    /// Answers only requests to these hosts, each with its port as browsers send it
    /// (`tasks.example.com`). May be repeated.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Believes the header `X-Forwarded-Prefix`, with which a proxy says under which path it serves
    /// the console. Use it only behind a proxy that sets or removes the header.
    pub fn trust_forwarded_prefix(mut self) -> Self {
        self.trusts_prefix = true;
        self
    }

    /// Sets how many browsers may listen to events at once. More are asked to come back later, and
    /// ask for the pages again and again meanwhile. The default is 256.
    pub fn listeners_max(mut self, count: usize) -> Self {
        self.listeners_max = count;
        self
    }

    /// Returns the routes, which can be nested anywhere in the router of a program.
    ///
    /// A console without authentication has to know who connects: serve the program with
    /// `into_make_service_with_connect_info::<SocketAddr>()`.
    ///
    /// # Errors
    /// [`ConsoleError::NoSecret`].
    pub fn router(&self) -> Result<Router, ConsoleError> {
        if let Auth::Token(secrets) | Auth::Basic(secrets) = &self.auth
            && secrets.is_empty()
        {
            return Err(ConsoleError::NoSecret);
        }
        let default = if self.auth.is_none() { Payloads::Redacted } else { Payloads::Hidden };
        let store = self.client.broker();
        let address = store.endpoint().describe();
        let shared = Arc::new(Shared {
            carrying: carrying::Carrying::default(),
            sampling: Sampling::new(&self.client, self.listeners_max),
            stats_of_all: StatsOfAll::default(),
            client: self.client.clone(),
            auth: self.auth.clone(),
            nobody: self.nobody.clone(),
            sessions: Sessions::of(&address, store.namespace()),
            payloads: self.payloads.map(|set| set.unwrap_or(default)),
            hosts: self.hosts.clone(),
            trusts_prefix: self.trusts_prefix,
            known_tasks: tokio::sync::Mutex::default(),
        });
        carrying::begin(&shared);
        Ok(guard::guarded(api::routes(), shared))
    }

    pub(crate) fn has_auth(&self) -> bool {
        !self.auth.is_none()
    }
}
