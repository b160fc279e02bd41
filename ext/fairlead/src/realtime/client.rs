//! `Fairlead::Client`: the application's object for a client that stays connected. The engine's list of clients keeps
//! it alive until the last callback has run; the application may keep it for longer.

use super::callbacks::Callbacks;
use super::{handover, streams, subscriptions};
use crate::gvl::wait_without_gvl;
use crate::objects::set;
use crate::strings::{bytes, strings};
use fairlead_engine::{forks, Client, Protocol};
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{
    gc, method, prelude::*, scan_args::get_kwargs, scan_args::scan_args, DataTypeFunctions, Error, RHash, RModule,
    RString, Ruby, Symbol, TypedData, Value,
};
use rb_sys::{Qnil, VALUE};
use std::cell::Cell;
use std::sync::Arc;

/// Messages of this length or more are written without the GVL.
const LONG_BYTES: usize = 64 * 1024;

/// Longest time that [`set_timeout`] takes, in seconds.
const LONGEST_TIMEOUT: i64 = 255;

#[derive(TypedData)]
#[magnus(class = "Fairlead::Client", free_immediately, mark, size, wb_protected)]
pub(crate) struct NativeClient {
    client: Arc<Client>,
    /// Number of forks of this process when the object was made.
    forks: u32,
    env: Cell<VALUE>,
    handler: Cell<VALUE>,
    /// The handler that takes over with the next event, if there is one.
    next: Cell<Option<VALUE>>,
    /// Blocks of subscriptions by number: a Hash, or nil before the first block.
    pub(super) blocks: Cell<VALUE>,
    pub(super) last_block: Cell<u64>,
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
    crate::classes::know::<NativeClient>(ruby);
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
    class.define_method("defer", method!(subscriptions::defer, 0))?;
    class.define_private_method("refuse_subscription", method!(subscriptions::refuse, 0))?;
    class.define_private_method("subscribe_natively", method!(subscriptions::subscribe, 4))?;
    class.define_private_method("unsubscribe_natively", method!(subscriptions::unsubscribe, 1))?;
    class.define_private_method("stream_natively", method!(streams::stream, 5))?;
    class.define_private_method("send_missing", method!(streams::send_missing, 4))?;
    class.define_private_method("position_of_page", method!(streams::position_of_page, 2))?;
    class.define_private_method("subscribe_since_natively", method!(streams::subscribe_since, 3))?;
    class.define_private_method("confirm_signed_streams", method!(streams::confirm_signed_streams, 3))?;
    class.define_private_method("unstream_natively", method!(streams::unstream, 2))?;
    class.define_private_method("unstream_all_natively", method!(streams::unstream_all, 1))?;
    class.define_private_method("begin_with_env", method!(handover::begin_with_env, 1))?;
    class.define_private_method("begin_with_handler", method!(handover::begin_with_handler, 1))?;
    class.define_private_method("signed_identifiers", method!(handover::signed_identifiers, 0))?;
    class.define_private_method("resume_signed_stream", method!(handover::resume_signed_stream, 1))?;
    class.define_private_method("send_cable_pings", method!(streams::send_pings, 0))
}

/// Makes the object. Inside `protect`.
pub(crate) fn new(ruby: &Ruby, client: Arc<Client>, env: VALUE, handler: VALUE, callbacks: Callbacks) -> VALUE {
    let object = wrap(ruby, client, 0);
    set_env(&object, env);
    set_first_handler(&object, handler, callbacks);
    object.as_raw()
}

/// Makes the object of a client that has come from another process. It has neither env nor handler, and all events are kept until
/// it has. Inside `protect`.
pub(super) fn without_handler(ruby: &Ruby, client: Arc<Client>) -> VALUE {
    let last_block = client.largest_block();
    wrap(ruby, client, last_block).as_raw()
}

fn wrap(ruby: &Ruby, client: Arc<Client>, last_block: u64) -> Obj<NativeClient> {
    ruby.obj_wrap(NativeClient {
        client,
        forks: forks(),
        env: Cell::new(Qnil as VALUE),
        handler: Cell::new(Qnil as VALUE),
        next: Cell::new(None),
        blocks: Cell::new(Qnil as VALUE),
        last_block: Cell::new(last_block),
        callbacks: Cell::default(),
    })
}

pub(super) fn set_env(object: &Obj<NativeClient>, env: VALUE) {
    store(object, &object.env, env);
}

pub(super) fn set_first_handler(object: &Obj<NativeClient>, handler: VALUE, callbacks: Callbacks) {
    object.callbacks.set(callbacks);
    store(object, &object.handler, handler);
    object.client.want(callbacks.events());
}

/// The object behind a value that [`new`] has made.
pub(crate) fn of(_: &Ruby, value: VALUE) -> Option<Obj<NativeClient>> {
    // SAFETY: a live object, or nil.
    let value = unsafe { Value::from_raw(value) };
    Obj::<NativeClient>::try_convert(value).ok()
}

pub(super) fn store(object: &Obj<NativeClient>, cell: &Cell<VALUE>, value: VALUE) {
    cell.set(value);
    written(object, value);
}

/// Tells the collector that a cell contains `value` now.
fn written(object: &Obj<NativeClient>, value: VALUE) {
    // SAFETY: a live object and a live value, the GVL is held. RB_OBJ_WRITTEN leaves out immediates.
    unsafe { rb_sys::RB_OBJ_WRITTEN(object.as_raw(), rb_sys::Qundef as VALUE, value) };
}

impl NativeClient {
    /// The client; `None` in a process that the application has forked. A forked process shares the socket, but there
    /// the client counts as closed.
    pub(super) fn at_home(&self) -> Option<&Client> {
        (self.forks == forks()).then_some(&*self.client)
    }

    /// The client if it is open in this process, and not on its way to another one.
    pub(super) fn open(&self) -> Option<&Client> {
        self.at_home().filter(|client| client.is_here())
    }

    pub(crate) fn callbacks(&self) -> Callbacks {
        self.callbacks.get()
    }

    pub(crate) fn handler_value(&self) -> VALUE {
        self.handler.get()
    }

    pub(crate) fn env_value(&self) -> VALUE {
        self.env.get()
    }
}

/// Makes `next` the current handler, and returns the previous handler and its callbacks. `None` if the application has
/// set another handler while `next` was asked for its callbacks.
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

/// The handler that takes over with the next event.
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
    this.open().is_some()
}

fn pending(this: Obj<NativeClient>) -> isize {
    this.at_home().map_or(-1, Client::pending)
}

fn handler(this: Obj<NativeClient>) -> Value {
    // SAFETY: marked by the object.
    unsafe { Value::from_raw(this.next.get().unwrap_or(this.handler.get())) }
}

/// Calls `on_close` of the old handler and `on_open` of the new one, before any event in the queue. Nil closes the
/// connection.
fn set_handler(ruby: &Ruby, this: Obj<NativeClient>, handler: Value) -> Result<(), Error> {
    if !handler.to_bool() {
        this.at_home().inspect(|client| client.close(None, ""));
    } else if let Some(client) = this.open() {
        if !env(this).is_frozen() {
            // It raises if the application iterates over the env.
            magnus::rb_sys::protect(|| {
                set(ruby, this.env.get(), strings().rack_upgrade, handler.as_raw());
                handler.as_raw()
            })?;
        }
        this.next.set(Some(handler.as_raw()));
        written(&this, handler.as_raw());
        client.replaced();
    }
    Ok(())
}

fn timeout(this: Obj<NativeClient>) -> Option<u32> {
    this.open().map(Client::timeout)
}

fn set_timeout(ruby: &Ruby, this: Obj<NativeClient>, seconds: i64) -> Result<(), Error> {
    if !(0..=LONGEST_TIMEOUT).contains(&seconds) {
        let message = format!("the timeout must be between 0 and {LONGEST_TIMEOUT} seconds");
        return Err(Error::new(ruby.exception_range_error(), message));
    }
    this.at_home().inspect(|client| client.set_timeout(seconds as u32));
    Ok(())
}

/// `write(data, event: nil, id: nil, retry: nil)`: true, or false if the client does not take the message. Never waits.
fn write(ruby: &Ruby, this: Obj<NativeClient>, arguments: &[Value]) -> Result<bool, Error> {
    if let [data] = arguments {
        if let Some(string) = RString::from_value(*data) {
            return write_string(ruby, &this, string);
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
        return write_string(ruby, &this, string);
    }
    let Some(client) = this.at_home() else {
        return Ok(false);
    };
    write_apart(ruby, string, |string| {
        // SAFETY: the Strings are on the stack, and no Ruby runs while their bytes are read.
        let own = |part: &Option<RString>| part.map(|part| unsafe { bytes(ruby, part.as_raw()) }.to_vec());
        let (event, id) = (own(&event), own(&id));
        move || client.write_event(string, event.as_deref(), id.as_deref(), retry)
    })
}

/// Calls the function that `writes` makes for the bytes of a String: without the GVL if there are many bytes, because
/// compressing and copying them takes long.
fn write_apart<'a, W: FnMut() -> bool + Send>(
    ruby: &'a Ruby,
    string: RString,
    writes: impl FnOnce(&'a [u8]) -> W,
) -> Result<bool, Error> {
    // SAFETY: the String is on the stack.
    let is_long = unsafe { bytes(ruby, string.as_raw()) }.len() >= LONG_BYTES;
    let mut raw = string.as_raw();
    if is_long {
        // A String that shares the bytes, and keeps them when other threads change the first String.
        // SAFETY: a live String, the GVL is held; an exception is stopped and returned as magnus' error.
        raw = magnus::rb_sys::protect(|| unsafe { rb_sys::rb_str_new_frozen(raw) })?;
    }
    // SAFETY: the String is on the stack until the end of this function; no Ruby runs while its bytes are used, unless
    // the String is frozen.
    let mut write = writes(unsafe { bytes(ruby, raw) });
    let mut written = None;
    if is_long {
        wait_without_gvl(ruby, || written = Some(write()));
    }
    // `None`: Ruby wanted this thread back before the write began.
    let written = written.unwrap_or_else(&mut write);
    std::hint::black_box(raw);
    Ok(written)
}

/// The String that `to_str` or else `to_s` returns.
fn text(value: Value) -> Result<RString, Error> {
    // SAFETY: a live object; an exception is stopped and returned as magnus' error.
    let string = magnus::rb_sys::protect(|| unsafe { rb_sys::rb_check_string_type(value.as_raw()) })?;
    // SAFETY: nil or a String, on the stack.
    match RString::from_value(unsafe { Value::from_raw(string) }) {
        Some(string) => Ok(string),
        None => value.funcall("to_s", ()),
    }
}

fn write_string(ruby: &Ruby, this: &NativeClient, string: RString) -> Result<bool, Error> {
    let Some(client) = this.at_home() else {
        return Ok(false);
    };
    let raw = string.as_raw();
    // SAFETY: the String is on the stack, the GVL is held.
    let is_text = unsafe {
        rb_sys::rb_enc_get_index(raw) == rb_sys::rb_utf8_encindex()
            || rb_sys::rb_enc_get_index(raw) == rb_sys::rb_usascii_encindex()
    };
    write_apart(ruby, string, |bytes| move || client.write(bytes, is_text))
}

/// `close(code = nil, reason = nil)`: closes the connection after the queued messages.
fn close(ruby: &Ruby, this: Obj<NativeClient>, arguments: &[Value]) -> Result<(), Error> {
    let parsed = scan_args::<(), (Option<Option<i64>>, Option<Option<String>>), (), (), (), ()>(arguments)?;
    let (code, reason) = (parsed.optional.0.flatten(), parsed.optional.1.flatten());
    let code = match code.map(u16::try_from) {
        None => None,
        Some(Ok(code)) if fairlead_wire::websocket::is_sendable_close_code(code) => Some(code),
        Some(_) => {
            let message = "this close code must not be sent; use 1000 or 3000 to 4999 (RFC 6455 section 7.4)";
            return Err(Error::new(ruby.exception_arg_error(), message));
        }
    };
    this.at_home()
        .inspect(|client| client.close(code, reason.as_deref().unwrap_or_default()));
    Ok(())
}
