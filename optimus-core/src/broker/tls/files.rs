//! Certificates and keys in files, in PEM form.

use std::{fmt, fs, path::Path, sync::Arc};

use tokio_rustls::rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};

/// Returns the CAs in a file.
pub(super) fn roots(path: &Path) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path, "ca")? {
        roots.add(certificate).map_err(|p| refused(path, "ca", "has no valid certificate", p))?;
    }
    Ok(Arc::new(roots))
}

/// Returns the certificates in the file that this parameter of the URL names.
pub(super) fn certificates(
    path: &Path,
    name: &str,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(path, name)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let certificates = certificates.map_err(|p| refused(path, name, "is not a PEM file", p))?;
    if certificates.is_empty() {
        return Err(refused(path, name, "has no certificate", "no CERTIFICATE in PEM form"));
    }
    Ok(certificates)
}

/// Returns the client's key.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    let none = |problem| match problem {
        pem::Error::NoItemsFound => {
            refused(path, "key", "has no key", "no PRIVATE KEY in PEM form that is not encrypted")
        }
        other => refused(path, "key", "is not a PEM file", other),
    };
    PrivateKeyDer::from_pem_slice(&read(path, "key")?).map_err(none)
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|problem| refused(path, name, "can't be read", problem))
}

fn refused(path: &Path, name: &str, what: &str, why: impl fmt::Display) -> String {
    format!("{}, which {name} of the URL names, {what}: {why}", path.display())
}
