//! Why TLS failed, and what to do about it.

use std::{error::Error as _, io, sync::Arc};

use chrono::DateTime;
use redis::RedisError;
use tokio_rustls::rustls::{AlertDescription, CertificateError, Error, pki_types::UnixTime};

use super::{Identity, Tls};
use crate::{
    broker::{dial_error::DialError, tls_probe::SPEAKS_PLAINLY},
    obstacle_text::time_text,
};

/// The word in the error of rustls about a certificate that does not have version 3.
const VERSION_1: &str = "UnsupportedCertVersion";

/// The word in the error of rustls about the certificate of a CA in place of a server's.
const OF_A_CA: &str = "CaUsedAsEndEntity";

impl Tls {
    /// Explains a failed handshake, or an error in place of the first answer: a server reports only
    /// then that it refuses the client's certificate. An error without a TLS cause is returned
    /// unchanged.
    pub(in crate::broker) fn explain(&self, problem: DialError) -> DialError {
        let DialError::Redis(error) = &problem else { return problem };
        match of_tls(error) {
            Some(Error::General(_)) | None => problem,
            Some(why) => DialError::Tls(self.words(why)),
        }
    }

    fn words(&self, problem: &Error) -> String {
        match problem {
            Error::InvalidCertificate(problem) => self.of_certificate(problem),
            Error::AlertReceived(alert) => self.of_alert(*alert),
            Error::InvalidMessage(_) => SPEAKS_PLAINLY.to_owned(),
            Error::PeerIncompatible(_) => {
                format!("the server and this program have no version of TLS in common ({problem})")
            }
            other => format!("TLS failed: {other}"),
        }
    }

    fn of_certificate(&self, problem: &CertificateError) -> String {
        use CertificateError as Of;
        match problem {
            Of::UnknownIssuer | Of::BadSignature => match &self.ca {
                Some(ca) => format!(
                    "no CA of {} has signed the server's certificate; name the file of the one \
                     that has by the parameter ca of the URL",
                    ca.display()
                ),
                None => "no CA that this machine trusts has signed the server's certificate; name \
                         the file of the one that has by the parameter ca of the URL"
                    .to_owned(),
            },
            Of::Expired => expired(""),
            Of::ExpiredContext { not_after, .. } => expired(&format!(" on {}", date(*not_after))),
            Of::NotValidYet => early(" yet"),
            Of::NotValidYetContext { not_before, .. } => {
                early(&format!(" before {}", date(*not_before)))
            }
            Of::NotValidForName | Of::NotValidForNameContext { .. } => format!(
                "the server's certificate is for another name; set the parameter server_name of \
                 the URL to one that it has, or verify=ca ({problem})"
            ),
            Of::Other(problem) if problem.to_string().contains(VERSION_1) => {
                "the server's certificate has X.509 version 1, which can't be used, not even with \
                 verify=none; give the server one of version 3 (`openssl x509 -req` makes \
                 one with -extfile that has a subjectAltName)"
                    .to_owned()
            }
            Of::Other(problem) if problem.to_string().contains(OF_A_CA) => {
                "the server's certificate is that of a CA, as `openssl req -x509` makes it; let \
                 this CA sign one for the server (`openssl x509 -req` with -CA and -CAkey), and \
                 name the file of the CA by the parameter ca of the URL"
                    .to_owned()
            }
            other => format!("the server's certificate can't be used: {other}"),
        }
    }

    fn of_alert(&self, alert: AlertDescription) -> String {
        use AlertDescription as By;
        let Some(Identity { cert, .. }) = &self.identity else {
            return match alert {
                By::CertificateRequired | By::HandshakeFailure | By::BadCertificate => format!(
                    "the server requires a client's certificate; name its files by the \
                     parameters cert and key of the URL (its alert: {alert:?})"
                ),
                other => refused(other),
            };
        };
        match alert {
            By::CertificateExpired => format!("the certificate of {} has expired", cert.display()),
            By::UnknownCA
            | By::BadCertificate
            | By::CertificateUnknown
            | By::CertificateRevoked
            | By::UnsupportedCertificate
            | By::CertificateRequired
            | By::DecryptError
            | By::AccessDenied => format!(
                "the server does not accept the certificate of {}; use one of a CA that it trusts \
                 (its alert: {alert:?})",
                cert.display()
            ),
            other => refused(other),
        }
    }
}

fn expired(when: &str) -> String {
    format!("the server's certificate has expired{when}; renew it, or correct this machine's clock")
}

fn early(when: &str) -> String {
    format!(
        "the server's certificate is not valid{when}; correct this machine's clock, or the \
         certificate"
    )
}

/// Returns a date of a certificate, such as `2026-11-22T18:00:00Z`. The text of rustls also has the
/// present second, so each attempt would look like another problem and be logged.
fn date(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, 0).map_or_else(|| format!("{seconds} s"), time_text)
}

fn refused(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnrecognisedName => "the server does not know the name that it is asked \
                                               for; set the parameter server_name of the URL"
            .to_owned(),
        AlertDescription::ProtocolVersion => {
            "the server and this program have no version of TLS in common; let it speak 1.2 or 1.3"
                .to_owned()
        }
        other => format!("the server refused the TLS handshake (its alert: {other:?})"),
    }
}

/// Returns the TLS error inside an error of the client library.
fn of_tls(problem: &RedisError) -> Option<&Error> {
    let inner = problem.source()?.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>()?;
    inner.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<Error>()
}
