//! Sealed positions, for pages: a client may not choose from which position on it gets messages.
//!
//! As text: `epoch.offset.page.made.seal`. The page is a random number that names the page with this position, and was made at
//! that time. The seal is an HMAC of these parts and the channel, with a key that only the processes of the server have.

use super::layout::Layout;
use super::Position;
use ring::hmac::{sign, verify, Key, HMAC_SHA256};
use std::sync::atomic::Ordering::Relaxed;

/// The position of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePosition {
    /// The position when the page was made.
    pub position: Position,
    /// The number of the page; never 0.
    pub page: u64,
    /// The time when the page was made: milliseconds on the monotonic clock.
    pub made: u64,
}

pub(super) fn seal(layout: &Layout, channel: &[u8], position: PagePosition) -> String {
    let text = format!("{}.{:x}.{:x}", position.position, position.page, position.made);
    let seal: String = sign(&key(layout), &sealed(channel, &text))
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{text}.{seal}")
}

/// The position with a valid seal for this channel.
pub(super) fn open(layout: &Layout, channel: &[u8], text: &str) -> Option<PagePosition> {
    let (position, seal) = parse(text)?;
    let (text, _) = text.rsplit_once('.')?;
    verify(&key(layout), &sealed(channel, text), &seal).ok()?;
    Some(position)
}

/// The parts of a text with the right form: the position and the seal.
pub(super) fn parse(text: &str) -> Option<(PagePosition, Vec<u8>)> {
    let (rest, seal) = text.rsplit_once('.')?;
    let (rest, made) = rest.rsplit_once('.')?;
    let (position, page) = rest.rsplit_once('.')?;
    let position = PagePosition {
        position: position.parse().ok()?,
        page: u64::from_str_radix(page, 16).ok()?,
        made: u64::from_str_radix(made, 16).ok()?,
    };
    Some((position, from_hex(seal)?))
}

/// The bytes that are signed.
fn sealed(channel: &[u8], text: &str) -> Vec<u8> {
    [text.as_bytes(), b"\0", channel].concat()
}

fn key(layout: &Layout) -> Key {
    let mut key = [0; 32];
    for (bytes, word) in key.chunks_exact_mut(8).zip(layout.header().seal) {
        bytes.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
    }
    Key::new(HMAC_SHA256, &key)
}

/// The bytes of lower-case hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| (*byte as char).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let pairs = text.as_bytes().chunks_exact(2);
    let is_odd = !pairs.remainder().is_empty();
    let bytes = pairs.map(|pair| Some((digit(&pair[0])? << 4 | digit(&pair[1])?) as u8));
    bytes.collect::<Option<Vec<u8>>>().filter(|_| !is_odd)
}
