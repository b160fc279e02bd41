//! `Fairlead::Client`: what an application holds of a client that stays connected. Its engine's list of clients keeps it
//! alive until the last callback has run; an application may keep it for longer.

use super::callbacks::Callbacks;
use crate::strings::{bytes, strings};
use fairlead_engine::pubsub::{Delivery, Match};
use fairlead_engine::{Client, Protocol};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{
    gc, method, prelude::*, scan_args::get_kwargs, scan_args::scan_args, DataTypeFunctions, Error, RHash, RModule,
    RString, Ruby, Symbol, TypedData, Value,
};
use rb_sys::{rb_hash_aset, rb_hash_delete, rb_hash_lookup, rb_hash_new, rb_uint2inum, Qnil, RB_TYPE_P, VALUE};
use std::cell::Cell;
use std::sync::Arc;

/// Longest time that [`set_timeout`] takes, in seconds.
const LONGEST_TIMEOUT: i64 = 255;

#[derive(TypedData)]
#[magnus(class = "Fairlead::Client", free_immediately, mark, size, wb_protected)]
pub(crate) struct NativeClient {
    client: Arc<Client>,
    env: Cell<VALUE>,
    handler: Cell<VALUE>,
    /// The handler that takes over with the next event; undefined when there is none.
    next: Cell<Option<VALUE>>,
    /// Blocks of subscriptions by number; nil as long as there are none.
    blocks: Cell<VALUE>,
    last_block: Cell<u64>,
    callbacks: Cell<Callbacks>,
}

// SAFETY: the cells are used under the GVL only.
unsafe impl Send for NativeClient {}

impl DataTypeFunctions for NativeClient {
    fn mark(&self, _: &gc::Marker) {
        let nil = Qnil as VALUE;
        for value in [
            self.env.get(),
            self.handler.get(),
            self.next.get().unwrap_or(nil),
            self.blocks.get(),
        ] {
            // SAFETY: called by the collector while it marks, with values that were stored with a write barrier.
            unsafe { rb_sys::rb_gc_mark(value) };
        }
    }
}

pub(crate) fn init(ruby: &Ruby, fairlead: RModule) -> Result<(), Error> {
    let class = fairlead.define_class("Client", ruby.class_object())?;
    class.undef_default_alloc_func();
    class.define_method("env", method!(env, 0))?;
    class.define_method("protocol", method!(protocol, 0))?;
    class.define_method("open?", method!(is_open, 0))?;
    class.define_method("pending", method!(pending, 0))?;
    class.define_method("handler", method!(handler, 0))?;
    class.define_method("handler=", method!(set_handler, 1))?;
    class.define_method("timeout", method!(timeout, 0))?;
    class.define_method("timeout=", method!(set_timeout, 1))?;
    class.define_method("write", method!(write, -1))?;
    class.define_method("close", method!(close, -1))?;
    class.define_private_method("subscribe_natively", method!(subscribe, 4))?;
    class.define_private_method("unsubscribe_natively", method!(unsubscribe, 1))
}

/// Makes the object. Inside `protect`; `handler` answers to at least `respond_to?`.
pub(crate) fn new(ruby: &Ruby, client: Arc<Client>, env: VALUE, handler: VALUE, callbacks: Callbacks) -> VALUE {
    let object = ruby.obj_wrap(NativeClient {
        client,
        env: Cell::new(Qnil as VALUE),
        handler: Cell::new(Qnil as VALUE),
        next: Cell::new(None),
        blocks: Cell::new(Qnil as VALUE),
        last_block: Cell::new(0),
        callbacks: Cell::new(callbacks),
    });
    store(&object, &object.env, env);
    store(&object, &object.handler, handler);
    object.client.want(callbacks.events());
    object.as_raw()
}

/// The object behind a value that [`new`] has made.
pub(crate) fn of(_: &Ruby, value: VALUE) -> Option<Obj<NativeClient>> {
    // SAFETY: a live object, or nil.
    let value = unsafe { Value::from_raw(value) };
    Obj::<NativeClient>::try_convert(value).ok()
}

fn store(object: &Obj<NativeClient>, cell: &Cell<VALUE>, value: VALUE) {
    cell.set(value);
    written(object, value);
}

/// Tells the collector that a cell holds `value` now.
fn written(object: &Obj<NativeClient>, value: VALUE) {
    // SAFETY: a live object and a live value, the GVL is held. Immediates, of which the collector must not hear, are left out.
    unsafe { rb_sys::RB_OBJ_WRITTEN(object.as_raw(), rb_sys::Qundef as VALUE, value) };
}

impl NativeClient {
    pub(crate) fn callbacks(&self) -> Callbacks {
        self.callbacks.get()
    }

    pub(crate) fn handler_value(&self) -> VALUE {
        self.handler.get()
    }

    pub(crate) fn env_value(&self) -> VALUE {
        self.env.get()
    }

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

/// Makes `next` the current handler. Returns the one before and its callbacks; `None` when `next` is not what comes next any
/// more: another one was set while it was asked for its callbacks.
pub(crate) fn take_next_handler(
    object: &Obj<NativeClient>,
    next: VALUE,
    callbacks: Callbacks,
) -> Option<(VALUE, Callbacks)> {
    if object.next.get() != Some(next) {
        return None;
    }
    object.next.set(None);
    let before = (object.handler.get(), object.callbacks.replace(callbacks));
    store(object, &object.handler, next);
    object.client.want(callbacks.events());
    Some(before)
}

pub(crate) fn next_handler(object: &Obj<NativeClient>) -> Option<VALUE> {
    object.next.get()
}

fn env(this: Obj<NativeClient>) -> Value {
    // SAFETY: marked by the object.
    unsafe { Value::from_raw(this.env.get()) }
}

fn protocol(ruby: &Ruby, this: Obj<NativeClient>) -> Symbol {
    ruby.to_symbol(match this.client.protocol() {
        Protocol::WebSocket => "websocket",
        Protocol::EventStream { .. } => "sse",
        Protocol::Stream { .. } => "stream",
    })
}

fn is_open(this: Obj<NativeClient>) -> bool {
    this.client.is_open()
}

fn pending(this: Obj<NativeClient>) -> isize {
    this.client.pending()
}

fn handler(this: Obj<NativeClient>) -> Value {
    // SAFETY: marked by the object.
    unsafe { Value::from_raw(this.next.get().unwrap_or(this.handler.get())) }
}

/// The old handler hears `on_close`, then the new one `on_open`, before any event that waits; nil closes the connection.
fn set_handler(this: Obj<NativeClient>, handler: Value) {
    if !handler.to_bool() {
        return this.client.close(None, "");
    }
    if this.client.is_open() {
        if !env(this).is_frozen() {
            // SAFETY: live objects, the GVL is held. The env is a Hash of the application's; it may raise when it is being
            // iterated over, and nothing here has a destructor.
            unsafe { rb_hash_aset(this.env.get(), strings().rack_upgrade, handler.as_raw()) };
        }
        this.next.set(Some(handler.as_raw()));
        written(&this, handler.as_raw());
        this.client.replaced();
    }
}

fn timeout(this: Obj<NativeClient>) -> Option<u32> {
    this.client.is_open().then(|| this.client.timeout())
}

fn set_timeout(ruby: &Ruby, this: Obj<NativeClient>, seconds: i64) -> Result<(), Error> {
    if !(0..=LONGEST_TIMEOUT).contains(&seconds) {
        let message = format!("the timeout must be between 0 and {LONGEST_TIMEOUT} seconds");
        return Err(Error::new(ruby.exception_range_error(), message));
    }
    this.client.set_timeout(seconds as u32);
    Ok(())
}

/// `write(data, event: nil, id: nil, retry: nil)`: true, or false when it was not taken. Never waits.
fn write(ruby: &Ruby, this: Obj<NativeClient>, arguments: &[Value]) -> Result<bool, Error> {
    if let [data] = arguments {
        if let Some(string) = RString::from_value(*data) {
            return Ok(write_string(ruby, &this, string));
        }
    }
    let parsed = scan_args::<(Value,), (), (), (), RHash, ()>(arguments)?;
    let string = text(parsed.required.0)?;
    let options = get_kwargs::<_, (), (Option<Value>, Option<Value>, Option<u64>), ()>(
        parsed.keywords,
        &[],
        &["event", "id", "retry"],
    )?
    .optional;
    let part = |value: Option<Value>| value.filter(|value| !value.is_nil()).map(text).transpose();
    let (event, id, retry) = (part(options.0)?, part(options.1)?, options.2);
    if event.is_none() && id.is_none() && retry.is_none() {
        return Ok(write_string(ruby, &this, string));
    }
    // SAFETY: the Strings are on the stack, and no Ruby runs while their bytes are used.
    let written = unsafe {
        this.client.write_event(
            bytes(ruby, string.as_raw()),
            event.as_ref().map(|event| bytes(ruby, event.as_raw())),
            id.as_ref().map(|id| bytes(ruby, id.as_raw())),
            retry,
        )
    };
    Ok(written)
}

/// A String: what `to_str` gives, or else `to_s`. Raises what they raise.
fn text(value: Value) -> Result<RString, Error> {
    // SAFETY: a live object; what is raised is stopped, and goes on as magnus' error.
    let string = magnus::rb_sys::protect(|| unsafe { rb_sys::rb_check_string_type(value.as_raw()) })?;
    // SAFETY: nil or a String, on the stack.
    match RString::from_value(unsafe { Value::from_raw(string) }) {
        Some(string) => Ok(string),
        None => value.funcall("to_s", ()),
    }
}

fn write_string(ruby: &Ruby, this: &NativeClient, string: RString) -> bool {
    let raw = string.as_raw();
    // SAFETY: the String is on the stack, and no Ruby runs while its bytes are used.
    unsafe {
        let is_text = rb_sys::rb_enc_get_index(raw) == rb_sys::rb_utf8_encindex()
            || rb_sys::rb_enc_get_index(raw) == rb_sys::rb_usascii_encindex();
        this.client.write(bytes(ruby, raw), is_text)
    }
}

/// `close(code = nil, reason = nil)`: after what is queued.
fn close(ruby: &Ruby, this: Obj<NativeClient>, arguments: &[Value]) -> Result<(), Error> {
    let parsed = scan_args::<(), (Option<Option<i64>>, Option<Option<String>>), (), (), (), ()>(arguments)?;
    let (code, reason) = (parsed.optional.0.flatten(), parsed.optional.1.flatten());
    let code = match code.map(u16::try_from) {
        None => None,
        Some(Ok(code)) if fairlead_wire::websocket::is_sendable_close_code(code) => Some(code),
        Some(_) => {
            let message = "the close code must be one that may be sent (RFC 6455 section 7.4)";
            return Err(Error::new(ruby.exception_arg_error(), message));
        }
    };
    this.client.close(code, reason.as_deref().unwrap_or_default());
    Ok(())
}

/// See [`kind`] for `kind`; `block` is nil for what goes straight to the client. Returns the number of this process's
/// subscribers of that name, nil when the client is closed.
fn subscribe(
    ruby: &Ruby,
    this: Obj<NativeClient>,
    name: RString,
    pattern: u8,
    binary: bool,
    block: Value,
) -> Result<Option<usize>, Error> {
    let delivery = if block.is_nil() {
        if binary {
            Delivery::Binary
        } else {
            Delivery::Text
        }
    } else {
        let id = this.last_block.get() + 1;
        this.last_block.set(id);
        // SAFETY: live objects, the GVL is held; Integers as keys call no code of the application.
        unsafe {
            if this.blocks.get() == Qnil as VALUE {
                store(&this, &this.blocks, rb_hash_new());
            }
            rb_hash_aset(this.blocks.get(), rb_uint2inum(id as _), block.as_raw());
        }
        Delivery::Event(id)
    };
    let pattern = kind(ruby, pattern)?;
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
fn unsubscribe(ruby: &Ruby, this: Obj<NativeClient>, name: RString) -> Value {
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
            "there is no such kind of pattern",
        )),
    }
}
