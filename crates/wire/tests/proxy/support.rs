//! Headers of version 2, assembled byte by byte.

pub(crate) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

pub(crate) const LOCAL: u8 = 0x20;
pub(crate) const PROXY: u8 = 0x21;
pub(crate) const TCP4: u8 = 0x11;
pub(crate) const TCP6: u8 = 0x21;
pub(crate) const UNIX: u8 = 0x31;

/// From 192.0.2.1:40000 to 192.0.2.2:443.
pub(crate) const ADDRESSES: &[u8] = &[192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 1, 0xbb];

/// A header with its length.
pub(crate) fn header(command: u8, kind: u8, rest: &[&[u8]]) -> Vec<u8> {
    let rest = rest.concat();
    let length = (rest.len() as u16).to_be_bytes();
    [SIGNATURE, &[command, kind], &length, &rest].concat()
}

/// A header for an IPv4 client with these vectors.
pub(crate) fn with(vectors: &[&[u8]]) -> Vec<u8> {
    header(PROXY, TCP4, &[ADDRESSES, &vectors.concat()])
}

pub(crate) fn vector(kind: u8, value: &[u8]) -> Vec<u8> {
    let length = (value.len() as u16).to_be_bytes();
    [&[kind][..], &length, value].concat()
}

/// A vector about TLS.
pub(crate) fn tls(bits: u8, verification: u32, vectors: &[&[u8]]) -> Vec<u8> {
    vector(
        0x20,
        &[&[bits][..], &verification.to_be_bytes(), &vectors.concat()].concat(),
    )
}

/// The header with its checksum in a vector at the end.
pub(crate) fn with_checksum(header: &[u8]) -> Vec<u8> {
    let mut bytes = [header, &vector(0x03, &[0; 4])].concat();
    let length = (bytes.len() - 16) as u16;
    bytes[14..16].copy_from_slice(&length.to_be_bytes());
    let sum = crate::model::checksum(&bytes).to_be_bytes();
    let place = bytes.len() - 4;
    bytes[place..].copy_from_slice(&sum);
    bytes
}
