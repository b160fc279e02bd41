//! Subscriptions of one client: to the client itself, which gets the messages, or to a block.

use super::client::{store, NativeClient};
use crate::strings::bytes;
use fairlead_engine::pubsub::{Delivery, Match};
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{prelude::*, Error, RString, Ruby, Value};
use rb_sys::{rb_hash_aset, rb_hash_delete, rb_hash_lookup, rb_hash_new, rb_uint2inum, Qnil, RB_TYPE_P, VALUE};

impl NativeClient {
    /// The block of a subscription; `None` if that has ended.
    pub(crate) fn block(&self, _: &Ruby, id: u64) -> Option<VALUE> {
        let blocks = self.blocks.get();
        if blocks == Qnil as VALUE {
            return None;
        }
        // SAFETY: a live Hash with Integers as keys; calls no code of the application.
        let block = unsafe { rb_hash_lookup(blocks, rb_uint2inum(id as _)) };
        (block != Qnil as VALUE).then_some(block)
    }
}

/// `block`: nil if the client itself gets the messages, as binary ones if `binary`. See [`kind`] for `pattern`. Returns the
/// number of this process's subscribers of that name, nil when the client is closed.
pub(super) fn subscribe(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    name: RString,
    pattern: u8,
    binary: bool,
    block: Value,
) -> Result<Option<usize>, Error> {
    let pattern = kind(ruby, pattern)?;
    let delivery = match (block.is_nil(), binary) {
        (false, _) => Delivery::Event(keep_block(&this, block)),
        (true, true) => Delivery::Binary,
        (true, false) => Delivery::Text,
    };
    // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
    let subscribed = this
        .client
        .subscribe(unsafe { bytes(ruby, name.as_raw()) }, pattern, delivery);
    match (subscribed, delivery) {
        (Some((_, Some(before))), _) => forget_block(ruby, &this, before),
        (None, Delivery::Event(id)) => forget_block(ruby, &this, id),
        _ => {}
    }
    Ok(subscribed.map(|(count, _)| count))
}

/// Returns the number of this process's subscribers that are left, false when there was no such subscription, nil when the
/// client is closed.
pub(super) fn unsubscribe(ruby: &Ruby, this: Obj<NativeClient>, name: RString) -> Value {
    if !this.client.is_open() {
        return ruby.qnil().as_value();
    }
    // SAFETY: as above.
    match this.client.unsubscribe(unsafe { bytes(ruby, name.as_raw()) }) {
        Some((left, id)) => {
            forget_block(ruby, &this, id);
            ruby.integer_from_u64(left as u64).as_value()
        }
        None => ruby.qfalse().as_value(),
    }
}

/// Returns the number of the block.
fn keep_block(this: &Obj<NativeClient>, block: Value) -> u64 {
    let id = this.last_block.get() + 1;
    this.last_block.set(id);
    // SAFETY: live objects, the GVL is held; Integers as keys call no code of the application.
    unsafe {
        if this.blocks.get() == Qnil as VALUE {
            store(this, &this.blocks, rb_hash_new());
        }
        rb_hash_aset(this.blocks.get(), rb_uint2inum(id as _), block.as_raw());
    }
    id
}

fn forget_block(_: &Ruby, this: &NativeClient, id: u64) {
    let blocks = this.blocks.get();
    // SAFETY: nil or a live Hash with Integers as keys.
    unsafe {
        if RB_TYPE_P(blocks, rb_sys::ruby_value_type::RUBY_T_HASH) {
            rb_hash_delete(blocks, rb_uint2inum(id as _));
        }
    }
}

/// 0: the name of one channel, 1: a glob, 2: a subject with wildcards.
pub(crate) fn kind(ruby: &Ruby, number: u8) -> Result<Match, Error> {
    match number {
        0 => Ok(Match::Exact),
        1 => Ok(Match::Glob),
        2 => Ok(Match::Subject),
        _ => Err(Error::new(
            ruby.exception_arg_error(),
            format!("there is no kind of pattern {number}"),
        )),
    }
}
