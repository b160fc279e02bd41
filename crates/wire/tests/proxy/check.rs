//! Properties of every start of a connection; the fuzzer checks them, too.

use super::model::{self, Reading, Tls};
use fairlead_wire::{Error, ProxyHeader, ProxyVersions, PROXY_HEADER_BYTES, PROXY_LINE_BYTES};

const ALL: [ProxyVersions; 3] = [ProxyVersions::V1, ProxyVersions::V2, ProxyVersions::Any];

/// Every cut up to this length is tried; beyond it one in sixteen.
const EVERY_CUT: usize = 128;

pub(crate) fn proxy_header(bytes: &[u8]) {
    for versions in ALL {
        let parsed = ProxyHeader::parse(bytes, versions);
        assert_eq!(
            parsed.clone().map(|header| header.map(reading)),
            model::read(bytes, versions),
            "{bytes:?}"
        );
        let is_cut = |length: &usize| *length < EVERY_CUT || length % 16 == 0;
        for length in (0..bytes.len()).filter(is_cut) {
            match ProxyHeader::parse(&bytes[..length], versions) {
                Ok(None) => {}
                early => assert_eq!(early, parsed, "later bytes change nothing"),
            }
        }
        check_length(bytes, &parsed);
    }
}

fn check_length(bytes: &[u8], parsed: &Result<Option<ProxyHeader<'_>>, Error>) {
    let is_line = bytes.starts_with(b"P");
    match parsed {
        Ok(Some(header)) => {
            let most = if is_line { PROXY_LINE_BYTES } else { PROXY_HEADER_BYTES };
            assert!(header.len <= bytes.len().min(most));
            assert!(!is_line || bytes[..header.len].ends_with(b"\r\n"));
        }
        Ok(None) if is_line => assert!(bytes.len() < PROXY_LINE_BYTES),
        Ok(None) => assert!(bytes.len() < PROXY_HEADER_BYTES),
        Err(error) => assert_eq!(error.status(), 400),
    }
}

fn reading(header: ProxyHeader<'_>) -> Reading {
    let told = |text: &str| (!text.is_empty()).then(|| text.to_string());
    Reading {
        len: header.len,
        client: header.client,
        authority: header.authority.map(Into::into),
        tls: header.tls.map(|tls| {
            let name = tls.common_name.map(Into::into);
            Tls(
                [told(tls.version), told(tls.cipher), name],
                tls.certificate.map(<[u8]>::to_vec),
                [tls.has_certificate, tls.is_verified, tls.is_resumed],
            )
        }),
    }
}
