//! Calls of the application: for events of clients, for messages to the process, and for tasks. An exception is logged,
//! and the connection stays open.

use super::callbacks::{Callback, Callbacks};
use super::client::{self, NativeClient};
use crate::gvl::{wait_without_gvl, InApp};
use crate::native::process;
use crate::objects::call;
use crate::rack::OnThread;
use crate::strings::{ids, new, new_text};
use fairlead_engine::pubsub::Publication;
use fairlead_engine::{Client, Event};
use magnus::rb_sys::AsRawValue;
use magnus::typed_data::Obj;
use magnus::Ruby;
use rb_sys::{rb_ary_entry, rb_ary_store, Qnil, VALUE};
use std::sync::Arc;

impl OnThread<'_> {
    /// Calls the handler of a client.
    pub(crate) fn run_event(&self, client: &Arc<Client>, event: Event) {
        // SAFETY: a marked Array; an index outside of it gives nil.
        let value = unsafe { rb_ary_entry(self.app.clients, client.place() as _) };
        // The stream of a body has no object in that list.
        let Some(object) = client::of(self.ruby, value) else {
            return self.run_without_object(client, event);
        };
        let _in_app = InApp::enter(self.engine);
        if let Event::Message { text: true, data } = &event {
            if self.run_command(client, data) {
                return;
            }
        }
        match event {
            Event::Open => self.call_back(&object, Callback::Open),
            Event::Message { text, data } => self.message(&object, text, &data),
            Event::Published(id, publication) => self.deliver(client, &object, id, &publication),
            Event::Deferred(id) => self.run_deferred(&object, id),
            Event::Drained => self.call_back(&object, Callback::Drained),
            Event::Replaced => self.replace(&object),
            Event::Shutdown => self.call_back(&object, Callback::Shutdown),
            Event::Close => self.call_back(&object, Callback::Close),
            Event::HandOver => self.hand_over(client, Some(object)),
            Event::ContinueTakeover => self.continue_takeover(client, &object),
            Event::TakeOver(_) | Event::Departed => {}
        }
    }

    /// For a client that has just come from another process, or has come without a handler.
    fn run_without_object(&self, client: &Arc<Client>, event: Event) {
        match event {
            Event::TakeOver(state) => {
                let _in_app = InApp::enter(self.engine);
                self.take_over(client, &state);
            }
            Event::HandOver => self.hand_over(client, None),
            _ => {}
        }
    }

    /// Runs a command about a signed stream, without the GVL: it may copy all of the history.
    fn run_command(&self, client: &Client, data: &[u8]) -> bool {
        if !client.may_be_command(data) {
            return false;
        }
        let mut is_command = None;
        wait_without_gvl(self.ruby, || is_command = Some(client.run_command(data)));
        // `None`: Ruby wanted this thread back before that began.
        is_command.unwrap_or_else(|| client.run_command(data))
    }

    /// After the last callback: from now on only the application may keep the object alive. `forgotten`: the names that
    /// have no subscriber in this process any more.
    pub(crate) fn forget(&self, client: &Client, forgotten: &[Box<[u8]>]) {
        // SAFETY: a marked Array that has this index, because the client was stored there.
        unsafe {
            if rb_ary_entry(self.app.clients, client.place() as _) != Qnil as VALUE {
                rb_ary_store(self.app.clients, client.place() as _, Qnil as VALUE);
            }
        }
        if !forgotten.is_empty() {
            self.logged(Qnil as VALUE, || process::forgotten(self.ruby, forgotten));
        }
    }

    /// Calls the block of a subscription of the process.
    pub(crate) fn run_published(&self, id: u64, publication: &Publication) {
        let _in_app = InApp::enter(self.engine);
        self.logged(Qnil as VALUE, || {
            let Some(block) = process::block(self.ruby, id) else {
                return;
            };
            call_with(self.ruby, block, publication);
        });
    }

    /// Calls the oldest deferred block.
    pub(crate) fn run_task(&self) {
        let _in_app = InApp::enter(self.engine);
        self.logged(Qnil as VALUE, || {
            let Some(task) = process::next_task(self.ruby) else {
                return;
            };
            call(self.ruby, task, ids().call, &[]);
        });
    }

    fn call_back(&self, object: &Obj<NativeClient>, callback: Callback) {
        self.call_handler(object, object.handler_value(), object.callbacks(), callback);
    }

    fn call_handler(&self, object: &Obj<NativeClient>, handler: VALUE, callbacks: Callbacks, callback: Callback) {
        if callbacks.has(callback) {
            self.logged(object.env_value(), || {
                call(self.ruby, handler, callback.id(), &[object.as_raw()]);
            });
        }
    }

    fn message(&self, object: &Obj<NativeClient>, text: bool, data: &[u8]) {
        if !object.callbacks().has(Callback::Message) {
            return;
        }
        self.logged(object.env_value(), || {
            let message = if text {
                new_text(self.ruby, data)
            } else {
                new(self.ruby, data)
            };
            let arguments = [object.as_raw(), message];
            call(self.ruby, object.handler_value(), ids().on_message, &arguments);
        });
    }

    fn deliver(&self, client: &Client, object: &Obj<NativeClient>, id: u64, publication: &Arc<Publication>) {
        let Some(block) = object.block(self.ruby, id) else {
            return client.send_published(id, publication);
        };
        self.logged(object.env_value(), || call_with(self.ruby, block, publication));
    }

    fn run_deferred(&self, object: &Obj<NativeClient>, id: u64) {
        self.logged(object.env_value(), || {
            if let Some(block) = object.take_block(self.ruby, id) {
                call(self.ruby, block, ids().call, &[]);
            }
        });
    }

    fn replace(&self, object: &Obj<NativeClient>) {
        let Some(next) = client::next_handler(object) else {
            return;
        };
        let mut callbacks = Callbacks::default();
        self.logged(object.env_value(), || callbacks = Callbacks::of(self.ruby, next));
        if let Some((before, its_callbacks)) = client::take_next_handler(object, next, callbacks) {
            self.call_handler(object, before, its_callbacks, Callback::Close);
            self.call_back(object, Callback::Open);
        }
    }
}

/// Calls a block with the channel and the message. Inside `protect`.
fn call_with(ruby: &Ruby, block: VALUE, publication: &Publication) {
    // Text stays text: a handler that passes it to a WebSocket sends a text message.
    let string = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(_) => new_text(ruby, bytes),
        Err(_) => new(ruby, bytes),
    };
    let arguments = [string(&publication.channel), string(&publication.message)];
    call(ruby, block, ids().call, &arguments);
}
