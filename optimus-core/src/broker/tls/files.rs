//! Certificates and keys in files, in PEM form.

use std::{fmt, fs, path::Path, sync::Arc};

use tokio_rustls::rustls::{
    RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem, pem::PemObject as _},
};

const NO_KEY: &str = "no PRIVATE KEY in PEM form that is not encrypted";
/// The word in the head of an encrypted key.
const ENCRYPTED: &[u8] = b"ENCRYPTED";

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
    key_in(&read(path, "key")?, path)
}

fn key_in(bytes: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|problem| match problem {
        // The reader takes the headers of an encrypted key of the old form for a part of the key.
        pem::Error::NoItemsFound => refused(path, "key", "has no key", NO_KEY),
        _ if is_encrypted(bytes) => refused(path, "key", "has no key", NO_KEY),
        other => refused(path, "key", "is not a PEM file", other),
    })
}

fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.windows(ENCRYPTED.len()).any(|part| part == ENCRYPTED)
}

fn read(path: &Path, name: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|problem| refused(path, name, "can't be read", problem))
}

fn refused(path: &Path, name: &str, what: &str, why: impl fmt::Display) -> String {
    format!("{}, which {name} of the URL names, {what}: {why}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encrypted_key_of_the_old_form_is_named_as_one() {
        let of_openssl = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
                          DEK-Info: AES-128-CBC,00\n\nQUFB\n-----END EC PRIVATE KEY-----\n";
        let problem = key_in(of_openssl.as_bytes(), Path::new("/key")).unwrap_err();
        assert!(problem.contains("not encrypted"), "{problem}");
        let broken = of_openssl.replace("Proc-Type: 4,ENCRYPTED", "-");
        let problem = key_in(broken.as_bytes(), Path::new("/key")).unwrap_err();
        assert!(problem.contains("is not a PEM file"), "{problem}");
    }
}
