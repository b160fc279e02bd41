//! Streams of Action Cable: messages of a channel that go to the client in the frames of its protocol.

use super::client::NativeClient;
use crate::gvl::wait_without_gvl;
use crate::strings::{bytes, new};
use fairlead_engine::pubsub::Position;
use fairlead_engine::{Client, SignedStreams, StreamOptions, StreamStart, Streamed};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{prelude::*, Error, RArray, RString, Ruby, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// The bits of the last argument of [`stream`].
const EXTENDED: u8 = 1;
const WHOLE: u8 = 2;

/// `stream_natively(channel, identifier, since, page, form)`: `since` is a position or nil, `page` a sealed position that a
/// client has presented, or nil. Returns the number of this process's subscribers of the channel, and the number of messages
/// since the position, or false if some are lost; nil if the client is closed, is no WebSocket or has too many subscriptions.
pub(super) fn stream(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    channel: RString,
    identifier: String,
    since: Option<String>,
    page: Option<String>,
    form: u8,
) -> Result<Option<RArray>, Error> {
    let Some(client) = this.open() else { return Ok(None) };
    // SAFETY: the String is on the stack; its bytes are copied before any Ruby runs.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let since = match (page, since) {
        (Some(page), _) => client.start_of_page(&channel, &page),
        (None, Some(since)) => Some(StreamStart::Position(position(ruby, &since)?)),
        (None, None) => None,
    };
    let options = StreamOptions {
        since,
        extended: form & EXTENDED != 0,
        is_whole: form & WHOLE != 0,
        ..StreamOptions::default()
    };
    let streamed = run(ruby, options, || client.stream(&channel, &identifier, options));
    Ok(result(ruby, streamed))
}

/// `subscribe_since_natively(channel, since, binary)`: delivers the messages of a channel as they are, after the messages since
/// a position. If `since` is not a position, some are lost. The result is as above.
pub(super) fn subscribe_since(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    channel: RString,
    since: String,
    binary: bool,
) -> Option<RArray> {
    let options = StreamOptions {
        since: Some(since.parse().map_or(StreamStart::Unknown, StreamStart::Position)),
        is_text: !binary,
        ..StreamOptions::default()
    };
    // SAFETY: the String is on the stack; its bytes are copied before any Ruby runs.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let client = this.open()?;
    result(ruby, run(ruby, options, || client.subscribe_since(&channel, options)))
}

/// The number of subscribers, and the result.
type Made = Option<(usize, Streamed)>;

/// Makes a stream; without the GVL if messages of the history come first, because there may be many.
fn run(ruby: &Ruby, options: StreamOptions, make: impl Fn() -> Made + Sync) -> Made {
    let mut made = None;
    if options.since.is_some() {
        wait_without_gvl(ruby, || made = Some(make()));
    }
    // `None`: without a history, or Ruby wanted this thread back before that began.
    made.unwrap_or_else(make)
}

fn position(ruby: &Ruby, text: &str) -> Result<Position, Error> {
    text.parse().map_err(|()| {
        let text = "since is not a position; use the result of Fairlead::PubSub.position";
        Error::new(ruby.exception_arg_error(), text)
    })
}

fn result(ruby: &Ruby, streamed: Option<(usize, Streamed)>) -> Option<RArray> {
    let (count, streamed) = streamed?;
    let messages = match streamed {
        Streamed::After(messages) => ruby.integer_from_u64(messages as u64).as_value(),
        Streamed::Lost => ruby.qfalse().as_value(),
    };
    Some(ruby.ary_new_from_values(&[ruby.integer_from_u64(count as u64).as_value(), messages]))
}

/// `send_missing(channel, identifier, since, until)`: sends the messages of a stream after the position `since`, up to the offset
/// `until`. Returns the number of them, or false if some are lost.
pub(super) fn send_missing(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    channel: RString,
    identifier: String,
    since: String,
    until: u64,
) -> Value {
    let (Some(client), Ok(since)) = (this.open(), since.parse()) else {
        return ruby.qfalse().as_value();
    };
    // SAFETY: the String is on the stack; its bytes are copied before any Ruby runs.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let mut sent = None;
    wait_without_gvl(ruby, || {
        sent = Some(client.send_missing(&channel, &identifier, since, until))
    });
    // `None`: Ruby wanted this thread back before that began.
    match sent.unwrap_or_else(|| client.send_missing(&channel, &identifier, since, until)) {
        Some(messages) => ruby.integer_from_u64(messages as u64).as_value(),
        None => ruby.qfalse().as_value(),
    }
}

/// `position_of_page(channel, page)`: the position from which on a client needs messages, from the sealed one of its page; false
/// if some of them are lost, nil if it is none for this channel.
pub(super) fn position_of_page(ruby: &Ruby, this: Obj<NativeClient>, channel: RString, page: String) -> Value {
    // SAFETY: as above.
    let channel = unsafe { bytes(ruby, channel.as_raw()) }.to_vec();
    let position = this.open().and_then(|client| client.position_of_page(&channel, &page));
    match position {
        None => ruby.qnil().as_value(),
        Some(None) => ruby.qfalse().as_value(),
        Some(Some(position)) => ruby.str_new(&position.to_string()).as_value(),
    }
}

/// `confirm_signed_streams(channel, prefix, secret)`: confirms subscriptions to signed streams of the channel with this class
/// name without Ruby from now on. `prefix`: of their channels.
pub(super) fn confirm_signed_streams(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    channel: String,
    prefix: String,
    secret: RString,
) {
    static STREAMS: Mutex<Option<Arc<SignedStreams>>> = Mutex::new(None);
    let Some(client) = this.open() else { return };
    // SAFETY: as above.
    let secret = unsafe { bytes(ruby, secret.as_raw()) };
    let mut known = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    let streams = known.take().filter(|streams| streams.is(&channel, &prefix, secret));
    let streams = known.insert(streams.unwrap_or_else(|| Arc::new(SignedStreams::new(&channel, &prefix, secret))));
    client.confirm_signed_streams(streams);
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
