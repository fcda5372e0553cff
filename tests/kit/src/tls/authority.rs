//! A CA that lives as long as its test: [`Authority`].

use std::fs;
use std::path::PathBuf;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tempfile::TempDir;

/// The names of the test's machine.
const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

/// A CA. It signs certificates, and keeps them as files in a folder that is removed with this
/// value.
#[derive(Debug)]
pub struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key, in files.
#[derive(Clone, Debug)]
pub struct Issued {
    /// The file of the certificate.
    pub cert: PathBuf,
    /// The file of the certificate's key.
    pub key: PathBuf,
}

impl Authority {
    /// Creates a new CA, which no machine trusts.
    #[expect(clippy::new_without_default, reason = "each CA is different")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("optimus-ca-").tempdir();
        let folder = folder.expect("the system's folder for temporary files is writable");
        let key = KeyPair::generate().expect("keys can be made");
        let mut params = CertificateParams::new([]).expect("an empty list of names is valid");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, "a test's CA");
        let certificate = params.self_signed(&key).expect("a CA signs itself");
        let authority = Self { folder, issuer: Issuer::new(params, key) };
        fs::write(authority.ca(), certificate.pem()).expect("the folder is writable");
        authority
    }

    /// Returns the file of the CA's own certificate.
    pub fn ca(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// Signs a certificate for a server of this machine.
    pub fn server(&self) -> Issued {
        self.issue("server", &params(&HERE))
    }

    /// Signs a certificate for a server with another name.
    pub fn server_named(&self, name: &str) -> Issued {
        self.issue("named", &params(&[name]))
    }

    /// Signs a certificate for a server of this machine that expired in 2001.
    pub fn expired_server(&self) -> Issued {
        let mut params = params(&HERE);
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        self.issue("expired", &params)
    }

    /// Signs a certificate for a client.
    pub fn client(&self) -> Issued {
        let mut params = params(&["client"]);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue("client", &params)
    }

    /// Makes a certificate for a server of this machine that is its own CA, as `openssl req -x509`
    /// does.
    pub fn self_signed(&self) -> Issued {
        let mut params = params(&HERE);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.self_signed(&key).expect("a CA signs itself");
        self.store("self_signed", &certificate, &key)
    }

    fn issue(&self, name: &str, params: &CertificateParams) -> Issued {
        let key = KeyPair::generate().expect("keys can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("the CA signs");
        self.store(name, &certificate, &key)
    }

    fn store(&self, name: &str, certificate: &Certificate, key: &KeyPair) -> Issued {
        let file = |kind: &str, content: String| {
            let path = self.folder.path().join(format!("{name}.{kind}.pem"));
            fs::write(&path, content).expect("the folder is writable");
            path
        };
        Issued { cert: file("cert", certificate.pem()), key: file("key", key.serialize_pem()) }
    }
}

fn params(names: &[&str]) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("a test's names are valid");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}
