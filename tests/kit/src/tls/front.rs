//! TLS in front of a server without TLS: [`TlsFront`].

use std::net::Ipv4Addr;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::TlsFiles;
use crate::proxy::upstream::Upstream;

/// Accepts TLS on a free port of the loopback interface and passes the content on. When this value
/// is dropped, the front ends and closes its connections.
#[derive(Debug)]
pub struct TlsFront {
    port: u16,
    accepting: JoinHandle<()>,
}

impl TlsFront {
    /// Starts a front of the server at `url` (`redis://host:port/` or `unix:///path`), on the
    /// caller's runtime.
    ///
    /// # Panics
    ///
    /// If the URL does not belong to a server of the test kit, or the files are not for TLS.
    pub async fn start(url: &str, files: &TlsFiles) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.expect("a port of the loopback interface is free");
        let port = listener.local_addr().expect("a listener has an address").port();
        let accepting = tokio::spawn(accept(listener, files.clone(), Upstream::parse(url)));
        Self { port, accepting }
    }

    /// Returns the port on which the front listens.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Runs until the task is aborted, with all its connections.
async fn accept(listener: TcpListener, files: TlsFiles, upstream: Upstream) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((client, _)) = listener.accept() => {
                connections.spawn(carry(client, files.clone(), upstream.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Carries one connection. An error on either side shows as the end of the connection.
async fn carry(client: TcpStream, files: TlsFiles, upstream: Upstream) {
    // The files are read for each connection, because a test may replace them.
    let acceptor = TlsAcceptor::from(Arc::new(config(&files)));
    let _ = client.set_nodelay(true);
    let Ok(mut client) = acceptor.accept(client).await else { return };
    let Ok(mut server) = upstream.connect().await else { return };
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

fn config(files: &TlsFiles) -> ServerConfig {
    let provider = Arc::new(default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("ring knows the usual versions");
    let certificates = |path| -> Vec<CertificateDer<'static>> {
        let all = CertificateDer::pem_file_iter(path).expect("the file can be read");
        all.map(|certificate| certificate.expect("the file is PEM")).collect()
    };
    let config = match &files.client_ca {
        None => config.with_no_client_auth(),
        Some(ca) => {
            let mut roots = RootCertStore::empty();
            for ca in certificates(ca) {
                roots.add(ca).expect("the certificate is of a CA");
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            config.with_client_cert_verifier(verifier.build().expect("the file has a CA"))
        }
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("the file has a key");
    config
        .with_single_cert(certificates(&files.cert), key)
        .expect("the key and the certificate belong together")
}
