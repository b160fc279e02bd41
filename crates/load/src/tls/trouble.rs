//! Why a connection failed, in words that say what can be done about it.

use rustls::{AlertDescription, CertificateError, Error};

pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate(why),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server speaks nothing here that we offer by ALPN (HTTP/2 with --http2, HTTP/1.1 without)".into()
        }
        Error::AlertReceived(alert) => format!("the server sent the alert {alert:?}"),
        Error::InvalidMessage(_) => "the server does not speak TLS here".into(),
        Error::PeerIncompatible(why) => format!("the server speaks no TLS that we do ({why:?})"),
        other => other.to_string(),
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the certificate comes from nobody we trust (--cacert FILE says whom to trust, --insecure trusts anybody)"
                .into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name".into()
        }
        other => format!("the certificate is not valid ({other})"),
    }
}
