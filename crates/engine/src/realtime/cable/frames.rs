//! Frames of Action Cable: `{"identifier":…,"message":…}`. The message of a publication is JSON already, and goes into the
//! frame as it is.

use super::identifiers::Identifier;
use super::stream::Stream;
use crate::pubsub::{Position, WireForm};
use crate::realtime::encoding;
use crate::sync::Mutex;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Most frames for single clients that are compressed for one publication.
const MOST_COMPRESSED: usize = 64;

/// The forms of a publication for streams, made when first needed.
#[derive(Default)]
pub(super) struct Forms {
    is_json: OnceLock<bool>,
    /// Frames for one client each that were compressed.
    compressed: AtomicUsize,
    by_key: Mutex<HashMap<FormKey, Arc<WireForm>>>,
}

#[derive(PartialEq, Eq, Hash)]
enum FormKey {
    /// The address of an identifier, which lives while a stream has it; true for the extended protocol; the window of the
    /// compression.
    Cable(usize, bool, Option<u8>),
    /// An event with its position as the id; true if it is a chunk.
    Event(bool),
}

/// Returns true if a message can be part of a frame.
pub(super) fn is_json(message: &[u8]) -> bool {
    std::str::from_utf8(message).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// The text of a frame. `position`: after the message, for the extended protocol.
pub(super) fn text(stream: &Stream, identifier: &Identifier, message: &[u8], position: Option<Position>) -> Vec<u8> {
    let identifier = identifier.json.as_bytes();
    let mut text = Vec::with_capacity(identifier.len() + message.len() + 128);
    text.extend_from_slice(br#"{"identifier":"#);
    text.extend_from_slice(identifier);
    text.extend_from_slice(br#","message":"#);
    text.extend_from_slice(message);
    if let Some(position) = position.filter(|_| stream.options.extended) {
        let name = serde_json::Value::from(String::from_utf8_lossy(&stream.channel));
        let (epoch, offset) = (Position::epoch_text(position.epoch), position.offset);
        text.extend_from_slice(format!(r#","stream_id":{name},"epoch":"{epoch}","offset":{offset}"#).as_bytes());
    }
    text.push(b'}');
    text
}

impl Forms {
    pub(super) fn of(_: &[u8]) -> Forms {
        Forms::default()
    }

    /// Returns true if the message can be part of a frame.
    pub(super) fn is_json(&self, message: &[u8]) -> bool {
        *self.is_json.get_or_init(|| is_json(message))
    }

    /// The frame for all streams with the same identifier and window.
    pub(super) fn shared(
        &self,
        identifier: &Arc<Identifier>,
        extended: bool,
        bits: Option<u8>,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Arc<WireForm> {
        self.form(FormKey::Cable(Arc::as_ptr(identifier).addr(), extended, bits), make)
    }

    /// The event for all event streams.
    pub(super) fn event(&self, message: &[u8], position: Position, chunked: bool) -> Arc<WireForm> {
        self.form(FormKey::Event(chunked), || {
            encoding::positioned_event(message, position, chunked)
        })
    }

    /// Returns true if one more frame for a single client may be compressed: for many it would take too long.
    pub(super) fn may_compress(&self) -> bool {
        self.compressed.fetch_add(1, Relaxed) < MOST_COMPRESSED
    }

    fn form(&self, key: FormKey, make: impl FnOnce() -> Vec<u8>) -> Arc<WireForm> {
        let mut by_key = self.by_key.lock();
        let form = by_key.entry(key).or_insert_with(|| Arc::new(WireForm::new(make())));
        Arc::clone(form)
    }
}
