//! The opening handshake (RFC 6455 §4.1): the request, and the check of the response.

use super::deflate::Inflater;
use crate::response::head::Head;
use data_encoding::BASE64;

/// RFC 6455 §1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const DEFLATE: &str = "permessage-deflate";

/// Extensions and subprotocol that the client offers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    pub(crate) deflate: bool,
    pub(crate) protocol: Option<String>,
}

/// The server's choice.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// Present if permessage-deflate is used.
    pub(crate) inflater: Option<Inflater>,
}

/// The value of Sec-WebSocket-Key: 16 random bytes.
pub(crate) fn key(nonce: [u64; 2]) -> String {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&nonce[0].to_be_bytes());
    bytes[8..].copy_from_slice(&nonce[1].to_be_bytes());
    BASE64.encode(&bytes)
}

/// The fields of the request besides Host.
pub(crate) fn fields(key: &str, offer: &Offer) -> Vec<(&'static str, String)> {
    let mut fields = vec![
        ("Upgrade", "websocket".to_owned()),
        ("Connection", "Upgrade".to_owned()),
        ("Sec-WebSocket-Key", key.to_owned()),
        ("Sec-WebSocket-Version", "13".to_owned()),
    ];
    if let Some(protocol) = &offer.protocol {
        fields.push(("Sec-WebSocket-Protocol", protocol.clone()));
    }
    if offer.deflate {
        fields.push(("Sec-WebSocket-Extensions", DEFLATE.to_owned()));
    }
    fields
}

/// Checks a response with status 101. The error says what is wrong.
pub(crate) fn check(head: &Head<'_>, key: &str, offer: &Offer) -> Result<Agreement, &'static str> {
    if !head.has("upgrade", "websocket") {
        return Err("no Upgrade: websocket");
    }
    if !head.has("connection", "upgrade") {
        return Err("no Connection: Upgrade");
    }
    let mut accepts = head.values("sec-websocket-accept");
    if accepts.next() != Some(accept(key).as_str()) || accepts.next().is_some() {
        return Err("Sec-WebSocket-Accept is wrong");
    }
    let mut protocols = head.values("sec-websocket-protocol");
    match (protocols.next(), &offer.protocol) {
        (None, _) => {}
        (Some(chosen), Some(offered)) if chosen == offered && protocols.next().is_none() => {}
        _ => return Err("a subprotocol that was not offered"),
    }
    let mut extensions = head.members("sec-websocket-extensions");
    let inflater = match extensions.next() {
        None => None,
        Some(extension) if offer.deflate => Some(deflate(extension)?),
        Some(_) => return Err("an extension that was not offered"),
    };
    if extensions.next().is_some() {
        return Err("an extension that was not offered");
    }
    Ok(Agreement { inflater })
}

/// RFC 7692 §7.1: the parameters with which a server may accept our offer.
fn deflate(extension: &str) -> Result<Inflater, &'static str> {
    let mut parts = extension.split(';').map(str::trim);
    if parts.next() != Some(DEFLATE) {
        return Err("an extension that was not offered");
    }
    let mut forgets = false;
    for parameter in parts {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let bits = value.trim_matches('"').parse();
        match name {
            "server_no_context_takeover" if value.is_empty() => forgets = true,
            "client_no_context_takeover" if value.is_empty() => {}
            "server_max_window_bits" if matches!(bits, Ok(8..=15u8)) => {}
            _ => return Err("a parameter of permessage-deflate that was not offered"),
        }
    }
    Ok(Inflater::new(forgets))
}

/// RFC 6455 §4.2.2: the proof that the server has read the key.
fn accept(key: &str) -> String {
    BASE64.encode(&sha1_smol::Sha1::from(format!("{key}{GUID}")).digest().bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    const GOOD: &str =
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

    fn answer(fields: &str, offer: &Offer) -> Result<Agreement, &'static str> {
        let text = format!("HTTP/1.1 101 Switching Protocols\r\n{fields}\r\n\r\n");
        let checked = Head::parse(text.as_bytes(), |head| check(head, KEY, offer));
        checked.expect("valid").expect("whole").0
    }

    fn refusal(fields: &str, offer: &Offer) -> &'static str {
        answer(fields, offer).map(drop).expect_err(fields)
    }

    #[test]
    fn the_key_has_the_bytes_of_the_nonce() {
        assert_eq!(key([0x7468_6520_7361_6d70, 0x6c65_206e_6f6e_6365]), KEY);
    }

    #[test]
    fn the_answer_of_the_rfc_is_accepted() {
        let agreement = answer(GOOD, &Offer::default()).expect("good");
        assert!(agreement.inflater.is_none());
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_named() {
        let offer = Offer {
            deflate: true,
            protocol: Some("chat".into()),
        };
        let good = |more: &str| format!("{GOOD}\r\n{more}");
        let table = [
            (
                GOOD.replace("Upgrade: websocket", "Upgrade: h2c"),
                "no Upgrade: websocket",
            ),
            (
                GOOD.replace("Connection: Upgrade", "Connection: close"),
                "no Connection: Upgrade",
            ),
            (GOOD.replace("s3pP", "s3pQ"), "Sec-WebSocket-Accept is wrong"),
            (good("Sec-WebSocket-Accept: again"), "Sec-WebSocket-Accept is wrong"),
            (
                good("Sec-WebSocket-Protocol: superchat"),
                "a subprotocol that was not offered",
            ),
            (
                good("Sec-WebSocket-Extensions: bbf-usp"),
                "an extension that was not offered",
            ),
            (
                good("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=9"),
                "a parameter of permessage-deflate that was not offered",
            ),
            (
                good("Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate"),
                "an extension that was not offered",
            ),
        ];
        for (fields, reason) in table {
            assert_eq!(refusal(&fields, &offer), reason, "{fields}");
        }
        let nothing = Offer::default();
        assert_eq!(
            refusal(&good("Sec-WebSocket-Protocol: chat"), &nothing),
            "a subprotocol that was not offered"
        );
        let deflate = good("Sec-WebSocket-Extensions: permessage-deflate");
        assert_eq!(refusal(&deflate, &nothing), "an extension that was not offered");
    }

    #[test]
    fn deflate_is_agreed_upon_with_its_parameters() {
        let offer = Offer {
            deflate: true,
            protocol: None,
        };
        let fields = format!(
            "{GOOD}\r\nSec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; server_max_window_bits=\"15\""
        );
        assert!(answer(&fields, &offer).expect("good").inflater.is_some());
    }
}
