//! Clients that move to another process, and clients that have come from one: the calls of `Fairlead::Handover`.

use super::callbacks::{resolve, Callback, Callbacks};
use super::client::{self, NativeClient};
use crate::classes::HANDOVER;
use crate::native::process;
use crate::objects::{call, is_a};
use crate::rack::OnThread;
use crate::strings::{bytes, ids, new};
use fairlead_engine::{Client, Handover, Protocol};
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::{Error, RArray, Ruby, Value};
use rb_sys::{rb_ary_store, rb_cString, Qfalse, Qnil, Qtrue, VALUE};
use std::sync::Arc;

/// Close code of a server that restarts (registered with IANA).
const SERVICE_RESTART: u16 = 1012;

const REFUSED: &str = "the new version of the application cannot take over the client";

impl OnThread<'_> {
    /// Asks the handler of a client for its state. `None`: the client has come here without a handler.
    pub(super) fn hand_over(&self, client: &Client, object: Option<Obj<NativeClient>>) {
        let handover = match object {
            Some(object) => self.state(&object),
            None if matches!(client.protocol(), Protocol::EventStream { .. }) => Handover::Native,
            None => Handover::Refused,
        };
        if self.engine.is_at_home() {
            client.hand_over(handover);
        }
    }

    fn state(&self, object: &Obj<NativeClient>) -> Handover {
        if !object.callbacks().has(Callback::HandOver) {
            return Handover::Refused;
        }
        let mut state = Qnil as VALUE;
        self.logged(object.env_value(), || {
            state = call(self.ruby, handover(self.ruby), ids().of, &[object.as_raw()]);
        });
        // SAFETY: a constant of Ruby.
        if is_a(self.ruby, state, unsafe { rb_cString }) {
            // SAFETY: the String is on the stack, and no Ruby runs while its bytes are copied.
            return Handover::State(unsafe { bytes(self.ruby, state) }.to_vec());
        }
        match state == Qtrue as VALUE && !object.has_blocks(self.ruby) {
            true => Handover::Native,
            false => Handover::Refused,
        }
    }

    /// Makes the object of a client that has come from another process, and its handler.
    pub(super) fn take_over(&self, client: &Arc<Client>, state: &[u8]) {
        let mut object = Qnil as VALUE;
        let mut result = Qnil as VALUE;
        let mut owned = Some(Arc::clone(client));
        self.logged(Qnil as VALUE, || {
            let Some(owned) = owned.take() else { return };
            object = client::without_handler(self.ruby, owned);
            // SAFETY: a marked Array, a live object.
            unsafe { rb_ary_store(self.app.clients, client.place() as _, object) };
            let arguments = [
                object,
                new(self.ruby, state),
                self.template.outline(self.ruby),
                self.app.app,
            ];
            result = call(self.ruby, handover(self.ruby), ids().take_over, &arguments);
        });
        self.go_on(client, result);
        std::hint::black_box(object);
    }

    /// Gives the handler of such a client a further turn.
    pub(super) fn continue_takeover(&self, client: &Client, object: &Obj<NativeClient>) {
        let mut result = Qnil as VALUE;
        self.logged(object.env_value(), || {
            result = call(self.ruby, handover(self.ruby), ids().resume, &[object.as_raw()]);
        });
        self.go_on(client, result);
    }

    /// `result`: true if the client has its handler and its subscriptions, false if that takes further turns. Nil, also after
    /// an exception: nobody takes the client over. Does nothing in a process that the app has forked meanwhile.
    fn go_on(&self, client: &Client, result: VALUE) {
        if !self.engine.is_at_home() {
            return;
        }
        if result == Qtrue as VALUE {
            let forgotten = client.taken_over();
            self.logged(Qnil as VALUE, || process::forgotten(self.ruby, &forgotten));
        } else if result == Qfalse as VALUE {
            client.continue_takeover();
        } else {
            client.close(Some(SERVICE_RESTART), REFUSED);
        }
    }
}

fn handover(ruby: &Ruby) -> VALUE {
    ruby.get_inner(&HANDOVER).as_raw()
}

/// `begin_with_env(env)`: the env of a client that has come from another process.
pub(super) fn begin_with_env(this: Obj<NativeClient>, env: Value) {
    client::set_env(&this, env.as_raw());
}

/// `begin_with_handler(handler)`: its handler, which gets no `on_open`.
pub(super) fn begin_with_handler(ruby: &Ruby, this: Obj<NativeClient>, handler: Value) -> Result<(), Error> {
    let mut callbacks = Callbacks::default();
    let handler = magnus::rb_sys::protect(|| {
        let (handler, found) = resolve(ruby, handler.as_raw());
        callbacks = found;
        handler
    })?;
    client::set_first_handler(&this, handler, callbacks);
    std::hint::black_box(handler);
    Ok(())
}

/// The identifiers of subscriptions that the server has confirmed.
pub(super) fn signed_identifiers(ruby: &Ruby, this: Obj<NativeClient>) -> RArray {
    let identifiers = this.open().map(Client::confirmed_identifiers).unwrap_or_default();
    ruby.ary_from_vec(identifiers)
}

/// `resume_signed_stream(identifier)`: keeps such a subscription, which another process has confirmed. False if the application
/// has to decide.
pub(super) fn resume_signed_stream(this: Obj<NativeClient>, identifier: String) -> bool {
    this.open().is_some_and(|client| client.keep_confirmed(&identifier))
}
