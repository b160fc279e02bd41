//! Frames of Action Cable: `{"identifier":…,"message":…}`. The message of a publication is JSON already, and goes into the
//! frame as it is.

use super::stream::Stream;
use crate::pubsub::{Past, Position, WireForm};
use crate::sync::Mutex;
use serde::de::IgnoredAny;
use std::collections::HashMap;
use std::sync::Arc;

/// The forms of a publication for Action Cable, made when first needed.
pub(super) struct Forms {
    /// The message can be part of a frame.
    pub(super) is_json: bool,
    by_key: Mutex<HashMap<FormKey, Arc<WireForm>>>,
}

/// The address of an identifier, which lives while a stream has it; true for the extended protocol; the window of the
/// compression.
type FormKey = (usize, bool, Option<u8>);

/// Returns true if a message can be part of a frame.
pub(super) fn is_json(message: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(message).is_ok()
}

/// The text of a frame. `position`: after the message, for the extended protocol.
pub(super) fn text(stream: &Stream, message: &[u8], position: Option<Position>) -> Vec<u8> {
    let identifier = stream.identifier.json.as_bytes();
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

/// The text of a frame with a message of the history.
pub(super) fn past_text(stream: &Stream, past: &Past, epoch: u64) -> Vec<u8> {
    let offset = past.offset;
    text(stream, &past.message, Some(Position { epoch, offset }))
}

impl Forms {
    pub(super) fn of(message: &[u8]) -> Forms {
        Forms {
            is_json: is_json(message),
            by_key: Mutex::default(),
        }
    }

    /// The form for all streams with the same identifier and window.
    pub(super) fn shared(&self, stream: &Stream, bits: Option<u8>, make: impl FnOnce() -> Vec<u8>) -> Arc<WireForm> {
        let address = Arc::as_ptr(&stream.identifier).addr();
        let key = (address, stream.options.extended, bits);
        let mut by_key = self.by_key.lock();
        let form = by_key.entry(key).or_insert_with(|| Arc::new(WireForm::new(make())));
        Arc::clone(form)
    }
}
