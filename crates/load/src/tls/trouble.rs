//! Explains why a connection failed, and what can be done about it.

use rustls::{AlertDescription, CertificateError, Error};

pub(super) fn words(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => certificate(why),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            "the server accepts no protocol that we offer by ALPN (HTTP/2 with --http2, HTTP/1.1 without)".into()
        }
        Error::AlertReceived(alert) => format!("the server sent the alert {alert:?}"),
        Error::InvalidMessage(_) => "the server does not speak TLS here".into(),
        Error::PeerIncompatible(why) => format!(
            "the server's TLS is not compatible with ours ({})",
            plain(&format!("{why:?}"))
        ),
        other => other.to_string(),
    }
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the certificate is not from a trusted authority; name one with --cacert FILE, or use --insecure"
                .into()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "the certificate has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the certificate is not valid yet".into()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "the certificate is for another name".into()
        }
        CertificateError::Other(why) if why.to_string() == "CaUsedAsEndEntity" => {
            "the certificate signs itself, as only an authority does (--insecure takes it; or give the server one that an authority \
             has signed, and name the authority with --cacert FILE)"
                .into()
        }
        CertificateError::Other(why) => format!("the certificate is not valid ({})", plain(&why.to_string())),
        other => format!("the certificate is not valid ({})", plain(&format!("{other:?}"))),
    }
}

/// Spells out a name such as `BadSignature`, the only description that rustls has for some errors. Omits the text after
/// the name.
fn plain(name: &str) -> String {
    let end = name
        .find(|letter: char| !letter.is_alphanumeric())
        .unwrap_or(name.len());
    let mut words = String::new();
    for letter in name[..end].chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{OtherError, PeerIncompatible};
    use std::{io, sync::Arc};

    #[test]
    fn nothing_is_shown_as_rust_writes_it() {
        let self_signed = CertificateError::Other(OtherError(Arc::new(io::Error::other("CaUsedAsEndEntity"))));
        let other = CertificateError::Other(OtherError(Arc::new(io::Error::other("MaximumPathLengthExceeded"))));
        for (error, words) in [
            (Error::InvalidCertificate(self_signed), "signs itself"),
            (Error::InvalidCertificate(other), "(maximum path length exceeded)"),
            (
                Error::InvalidCertificate(CertificateError::BadSignature),
                "(bad signature)",
            ),
            (
                Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
                "(no cipher suites in common)",
            ),
        ] {
            let said = super::words(&error);
            assert!(said.contains(words), "{said}");
        }
    }
}
