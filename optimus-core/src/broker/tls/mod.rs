//! TLS: what a URL asks for, and how a stream gets it ([`Tls`]).
//!
//! The cryptography is `ring`'s, named for each connection: the process gets no default provider,
//! and one that it has is not used. Files are read at each connection, so renewed certificates need
//! no restart.

mod explain;
mod files;
mod trust;

use std::{io, path::PathBuf, sync::Arc};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::spawn_blocking,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, client::Resumption, crypto::ring::default_provider, pki_types::ServerName,
    },
};

use super::{parameters::Parameters, refused::DialError};

/// How a connection is secured.
#[derive(Clone)]
pub(super) struct Tls {
    name: ServerName<'static>,
    verify: Verify,
    /// In place of the system's.
    ca: Option<PathBuf>,
    identity: Option<Identity>,
}

/// What is asked of the server's certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verify {
    /// That a trusted CA has signed it, and that it is for this server.
    Full,
    /// That a trusted CA has signed it.
    Ca,
    /// Nothing: the connection is secret, but who is at its other end is not known.
    None,
}

/// How the client shows who it is.
#[derive(Clone)]
struct Identity {
    cert: PathBuf,
    key: PathBuf,
}

impl Tls {
    /// As the URL says; the error says what is wrong.
    pub(super) fn of(parameters: &Parameters, host: &str) -> Result<Self, String> {
        let verify = match parameters.get("verify") {
            None | Some("full") => Verify::Full,
            Some("ca") => Verify::Ca,
            Some("none") => Verify::None,
            Some(_) => return Err("its parameter verify is not full, ca or none".to_owned()),
        };
        let file = |name| parameters.get(name).map(PathBuf::from);
        let ca = file("ca");
        if ca.is_some() && verify == Verify::None {
            return Err("it has ca, which verify=none has no use for; leave one out".to_owned());
        }
        let identity = match (file("cert"), file("key")) {
            (Some(cert), Some(key)) => Some(Identity { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err("it has cert without key; name both files".to_owned()),
            (None, Some(_)) => return Err("it has key without cert; name both files".to_owned()),
        };
        let name = parameters.get("server_name").unwrap_or(host).to_owned();
        let name = ServerName::try_from(name).map_err(
            |_| "its host can't be the name in a certificate; set the parameter server_name to one",
        )?;
        Ok(Self { name, verify, ca, identity })
    }

    /// Agrees with the server on keys, once both are content with the other's certificate.
    pub(super) async fn connect<S>(&self, stream: S) -> Result<TlsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let tls = self.clone();
        let config = spawn_blocking(move || tls.config()).await;
        let config = config.map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config.map_err(DialError::Misconfigured)?));
        let secured = connector.connect(self.name.clone(), stream).await;
        secured.map_err(|problem| self.explain(problem.into()))
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(default_provider());
        let roots = match (&self.ca, self.verify) {
            (_, Verify::None) => None,
            (Some(ca), _) => Some(files::roots(ca)?),
            (None, _) => Some(trust::system_roots()?),
        };
        let config = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|problem| problem.to_string())?;
        let config = match roots {
            Some(roots) if self.verify == Verify::Full => config.with_root_certificates(roots),
            roots => {
                let trust = trust::Lenient::new(roots, &provider);
                config.dangerous().with_custom_certificate_verifier(Arc::new(trust))
            }
        };
        let mut config = match &self.identity {
            None => config.with_no_client_auth(),
            Some(Identity { cert, key }) => config
                .with_client_auth_cert(files::certificates(cert, "cert")?, files::key(key)?)
                .map_err(|problem| {
                    let (cert, key) = (cert.display(), key.display());
                    format!(
                        "{cert} and {key}, which cert and key of the URL name, can't be used \
                             together: {problem}"
                    )
                })?,
        };
        // Each connection has its own, so nothing would be resumed.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}
