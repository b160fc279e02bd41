//! What must hold for any start of a connection; the fuzzer runs it, too.

use super::model;
use fairlead_wire::{Error, ProxyLine, PROXY_LINE_BYTES};

pub(crate) fn proxy_line(bytes: &[u8]) {
    let parsed = ProxyLine::parse(bytes);
    assert_eq!(parsed, model::read(bytes), "{bytes:?}");
    for length in 0..bytes.len() {
        match (ProxyLine::parse(&bytes[..length]), parsed) {
            (Ok(None), _) => {}
            (Err(error), _) => assert_eq!(parsed, Err(error), "what is refused stays so"),
            (Ok(Some(line)), _) => assert_eq!(parsed, Ok(Some(line)), "what follows changes nothing"),
        }
    }
    match parsed {
        Ok(Some(line)) => {
            assert!(line.len <= bytes.len().min(PROXY_LINE_BYTES) && bytes[..line.len].ends_with(b"\r\n"))
        }
        Ok(None) => assert!(bytes.len() < PROXY_LINE_BYTES),
        Err(error) => assert_eq!(error, Error::InvalidProxyLine),
    }
}
