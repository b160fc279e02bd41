//! Subscriptions of one client. The messages go to the client itself or to a block.

use super::client::{store, NativeClient};
use crate::strings::bytes;
use fairlead_engine::pubsub::{Delivery, Match};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{prelude::*, Error, RHash, RString, Ruby, Value};
use rb_sys::VALUE;

impl NativeClient {
    /// The block of a subscription; `None` if the subscription has ended.
    pub(super) fn block(&self, ruby: &Ruby, id: u64) -> Option<VALUE> {
        let block = self.blocks(ruby)?.get(id)?;
        Some(block.as_raw())
    }

    /// Removes a deferred block and returns it.
    pub(super) fn take_block(&self, ruby: &Ruby, id: u64) -> Option<VALUE> {
        let block: Option<Value> = self.blocks(ruby)?.delete(id).ok()?;
        block.map(|block| block.as_raw())
    }

    /// Returns true if blocks get messages, or wait for the client's turn.
    pub(super) fn has_blocks(&self, ruby: &Ruby) -> bool {
        self.blocks(ruby).is_some_and(|blocks| !blocks.is_empty())
    }

    /// The Hash of blocks, if there is one.
    fn blocks(&self, _: &Ruby) -> Option<RHash> {
        // SAFETY: the GVL is held; nil or a Hash, which the object marks.
        RHash::from_value(unsafe { Value::from_raw(self.blocks.get()) })
    }
}

/// `block`: nil if the client itself gets the messages, in binary form if `binary` is set. See [`kind`] for `pattern`.
/// Returns the number of this process's subscribers of that name, or nil if the client is closed or has too many
/// subscriptions.
pub(super) fn subscribe(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    name: RString,
    pattern: u8,
    binary: bool,
    block: Value,
) -> Result<Option<usize>, Error> {
    let pattern = kind(ruby, pattern)?;
    let Some(client) = this.open() else { return Ok(None) };
    let delivery = match (block.is_nil(), binary) {
        (false, _) => Delivery::Event(keep_block(ruby, &this, block)?),
        (true, true) => Delivery::Binary,
        (true, false) => Delivery::Text,
    };
    // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
    let subscribed = client.subscribe(unsafe { bytes(ruby, name.as_raw()) }, pattern, delivery);
    if let Delivery::Event(new) = delivery {
        settle_block(ruby, &this, new, subscribed.map(|(_, id)| id), block)?;
    }
    Ok(subscribed.map(|(count, _)| count))
}

/// Returns the number of this process's remaining subscribers, false if there was no such subscription, or nil if the
/// client is closed.
pub(super) fn unsubscribe(ruby: &Ruby, this: Obj<NativeClient>, name: RString) -> Result<Value, Error> {
    let Some(client) = this.open() else {
        return Ok(ruby.qnil().as_value());
    };
    // SAFETY: as above.
    match client.unsubscribe(unsafe { bytes(ruby, name.as_raw()) }) {
        Some((left, id)) => {
            forget_block(ruby, &this, id)?;
            Ok(ruby.integer_from_u64(left as u64).as_value())
        }
        None => Ok(ruby.qfalse().as_value()),
    }
}

/// `defer { … }`: runs the block in the client's turn, after the events that wait already. Returns true, or false if the
/// client is closed, or too many messages and blocks wait for its turn.
pub(super) fn defer(ruby: &Ruby, this: Obj<NativeClient>) -> Result<bool, Error> {
    let block = ruby.block_proc()?;
    // A client that has been closed runs blocks until its last event.
    let Some(client) = this.at_home().filter(|client| client.is_here() || !client.is_open()) else {
        return Ok(false);
    };
    let id = keep_block(ruby, &this, block.as_value())?;
    // Its turn needs the GVL, so the block is there.
    let is_deferred = client.defer(id);
    if !is_deferred {
        forget_block(ruby, &this, id)?;
    }
    Ok(is_deferred)
}

/// Notes that the application has refused a subscription because of `max_subscriptions`.
pub(super) fn refuse(this: Obj<NativeClient>) {
    this.at_home().inspect(|client| client.refuse_subscription());
}

/// Stores the block and returns its number.
fn keep_block(ruby: &Ruby, this: &Obj<NativeClient>, block: Value) -> Result<u64, Error> {
    let id = this.last_block.get() + 1;
    this.last_block.set(id);
    let blocks = this.blocks(ruby).unwrap_or_else(|| {
        let blocks = ruby.hash_new();
        store(this, &this.blocks, blocks.as_raw());
        blocks
    });
    blocks.aset(id, block)?;
    Ok(id)
}

/// Moves the block from its new number to the number that its events have. Messages that wait for the previous block of
/// the same name then run this one.
fn settle_block(
    ruby: &Ruby,
    this: &Obj<NativeClient>,
    new: u64,
    carried: Option<u64>,
    block: Value,
) -> Result<(), Error> {
    if carried == Some(new) {
        return Ok(());
    }
    forget_block(ruby, this, new)?;
    match (carried, this.blocks(ruby)) {
        (Some(id), Some(blocks)) => blocks.aset(id, block),
        _ => Ok(()),
    }
}

fn forget_block(ruby: &Ruby, this: &NativeClient, id: u64) -> Result<(), Error> {
    if let Some(blocks) = this.blocks(ruby) {
        blocks.delete::<_, Value>(id)?;
    }
    Ok(())
}

/// 0: the name of one channel, 1: a glob, 2: a subject with wildcards.
pub(crate) fn kind(ruby: &Ruby, number: u8) -> Result<Match, Error> {
    match number {
        0 => Ok(Match::Exact),
        1 => Ok(Match::Glob),
        2 => Ok(Match::Subject),
        _ => Err(Error::new(
            ruby.exception_arg_error(),
            format!("unknown kind of pattern {number}; use 0, 1 or 2"),
        )),
    }
}
