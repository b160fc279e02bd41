//! Streams of Action Cable: messages of a channel that go to the client in the frames of its protocol.

use super::client::NativeClient;
use crate::strings::{bytes, new};
use fairlead_engine::pubsub::Position;
use fairlead_engine::{Client, StreamOptions, Streamed};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{prelude::*, Error, RArray, RString, Ruby, Value};

/// `stream_natively(channel, identifier, since, extended)`: `since` is a position or nil. Returns the number of this process's
/// subscribers of the channel, and the number of messages since the position, or false if some are lost; nil if the client is
/// closed, is no WebSocket or has too many subscriptions.
pub(super) fn stream(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    channel: RString,
    identifier: String,
    since: Option<String>,
    extended: bool,
) -> Result<Option<RArray>, Error> {
    let Some(client) = this.open() else { return Ok(None) };
    let since = match since.as_deref().map(str::parse::<Position>) {
        None => None,
        Some(Ok(since)) => Some(since),
        Some(Err(())) => {
            return Err(Error::new(
                ruby.exception_arg_error(),
                "since is not a position; use Fairlead::Cable.position",
            ))
        }
    };
    let options = StreamOptions { since, extended };
    // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
    let streamed = client.stream(unsafe { bytes(ruby, channel.as_raw()) }, &identifier, options);
    Ok(streamed.map(|(count, streamed)| {
        let messages = match streamed {
            Streamed::After(messages) => ruby.integer_from_u64(messages as u64).as_value(),
            Streamed::Lost => ruby.qfalse().as_value(),
        };
        ruby.ary_new_from_values(&[ruby.integer_from_u64(count as u64).as_value(), messages])
    }))
}

/// Returns the number of this process's remaining subscribers of the channel, or nil if there was no such stream.
pub(super) fn unstream(ruby: &Ruby, this: Obj<NativeClient>, channel: RString, identifier: String) -> Option<usize> {
    // SAFETY: as above.
    this.open()?
        .unstream(unsafe { bytes(ruby, channel.as_raw()) }, &identifier)
}

/// Ends the streams of an identifier. Returns the channels that have no subscriber in this process any more.
pub(super) fn unstream_all(ruby: &Ruby, this: Obj<NativeClient>, identifier: String) -> Result<RArray, Error> {
    let left = this
        .open()
        .map(|client| client.unstream_all(&identifier))
        .unwrap_or_default();
    let names = ruby.ary_new_capa(left.len());
    for name in &left {
        // SAFETY: a new String.
        names.push(unsafe { Value::from_raw(new(ruby, name)) })?;
    }
    Ok(names)
}

/// Sends the pings of Action Cable until the client ends.
pub(super) fn send_pings(this: Obj<NativeClient>) {
    this.open().inspect(|client: &&Client| client.send_cable_pings());
}
