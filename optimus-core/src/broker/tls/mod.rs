//! The TLS settings of a URL, and the TLS handshake of a stream ([`Tls`]).
//!
//! The cryptography is from `ring`, set for each connection: it does not become the default
//! provider of the process, and an existing default is not used. Files are read for each
//! connection, so renewed certificates need no restart.

mod failure;
mod files;
mod trust;

use std::{path::PathBuf, sync::Arc};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, client::Resumption, crypto::ring::default_provider, pki_types::ServerName,
    },
};

use super::{dial_error::DialError, file_reader::Reader, parameters::Parameters};

/// How a connection is secured.
#[derive(Clone)]
pub(super) struct Tls {
    name: ServerName<'static>,
    verify: Verify,
    /// The file with the CAs that are used instead of those of the system.
    ca: Option<PathBuf>,
    identity: Option<Identity>,
    reader: Arc<Reader<Arc<ClientConfig>>>,
}

/// How the server's certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verify {
    /// A trusted CA has signed it, and it is for this server.
    Full,
    /// A trusted CA has signed it.
    Ca,
    /// No check: the connection is encrypted, but the server is not authenticated.
    None,
}

/// The certificate of the client.
#[derive(Clone)]
struct Identity {
    cert: PathBuf,
    key: PathBuf,
}

impl Tls {
    /// Reads the parameters of a URL; the error describes what is wrong.
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
            return Err("it has ca, which verify=none does not use; leave one out".to_owned());
        }
        let identity = match (file("cert"), file("key")) {
            (Some(cert), Some(key)) => Some(Identity { cert, key }),
            (None, None) => None,
            (Some(_), None) => return Err("it has cert without key; name both files".to_owned()),
            (None, Some(_)) => return Err("it has key without cert; name both files".to_owned()),
        };
        let given = parameters.get("server_name");
        let name = ServerName::try_from(given.unwrap_or(host).to_owned()).map_err(|_| match given {
            Some(_) => "its parameter server_name can't be the name in a certificate",
            None => {
                "its host can't be the name in a certificate; set the parameter server_name to one"
            }
        })?;
        Ok(Self { name, verify, ca, identity, reader: Arc::default() })
    }

    /// Reads the files, which may hang.
    pub(super) async fn read(&self) -> Result<Arc<ClientConfig>, DialError> {
        let tls = self.clone();
        let config = self.reader.read(move || tls.config().map(Arc::new));
        config.await.map_err(DialError::Misconfigured)
    }

    /// Runs the handshake, in which each side checks the other's certificate.
    pub(super) async fn connect<S>(
        &self,
        config: Arc<ClientConfig>,
        stream: S,
    ) -> Result<TlsStream<S>, DialError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let connector = TlsConnector::from(config);
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
        // Sessions are not stored: each connection has its own configuration, so none could be
        // resumed.
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}
