//! The handler of a client (Rack Push) and its callbacks. Their presence is checked once.

use crate::objects::{call, is_a, responds};
use crate::strings::{ids, Ids};
use fairlead_engine::Events;
use magnus::Ruby;
use rb_sys::{rb_cClass, Qtrue, ID, VALUE};

/// The callbacks that a handler has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callbacks(u8);

/// One callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Callback {
    Open = 1,
    Message = 2,
    Drained = 4,
    Shutdown = 8,
    Close = 16,
    HandOver = 32,
}

const ALL: [Callback; 6] = [
    Callback::Open,
    Callback::Message,
    Callback::Drained,
    Callback::Shutdown,
    Callback::Close,
    Callback::HandOver,
];

impl Callback {
    pub(crate) fn id(self) -> ID {
        let ids: &Ids = ids();
        match self {
            Callback::Open => ids.on_open,
            Callback::Message => ids.on_message,
            Callback::Drained => ids.on_drained,
            Callback::Shutdown => ids.on_shutdown,
            Callback::Close => ids.on_close,
            Callback::HandOver => ids.on_handover,
        }
    }
}

impl Callbacks {
    /// Finds the callbacks of a handler. Inside `protect`: its `respond_to?` may run.
    pub(crate) fn of(ruby: &Ruby, handler: VALUE) -> Callbacks {
        let mut found = 0;
        for callback in ALL {
            if responds(ruby, handler, callback.id()) {
                found |= callback as u8;
            }
        }
        Callbacks(found)
    }

    pub(crate) fn has(self, callback: Callback) -> bool {
        self.0 & callback as u8 != 0
    }

    /// The events that the engine has to report.
    pub(crate) fn events(self) -> Events {
        let mut events = Events::default();
        if self.has(Callback::Message) {
            events = events.and(Events::MESSAGE);
        }
        if self.has(Callback::Drained) {
            events = events.and(Events::DRAINED);
        }
        if self.has(Callback::HandOver) {
            events = events.and(Events::HANDOVER);
        }
        events
    }
}

/// The handler for the object that an application has set, and its callbacks. If a class has no callbacks of its own
/// but its instances have some, it is instantiated for each client. Inside `protect`.
pub(crate) fn resolve(ruby: &Ruby, handler: VALUE) -> (VALUE, Callbacks) {
    let callbacks = Callbacks::of(ruby, handler);
    // SAFETY: a constant of Ruby.
    let is_class = is_a(ruby, handler, unsafe { rb_cClass });
    if callbacks == Callbacks::default() && is_class && has_callbacks(ruby, handler) {
        let instance = call(ruby, handler, ids().new, &[]);
        return (instance, Callbacks::of(ruby, instance));
    }
    (handler, callbacks)
}

/// Returns true if instances of a class have callbacks. Inside `protect`.
fn has_callbacks(ruby: &Ruby, class: VALUE) -> bool {
    ALL.iter().any(|callback| {
        // SAFETY: the GVL is held, and the name is one of this file.
        let name = unsafe { rb_sys::rb_id2sym(callback.id()) };
        call(ruby, class, ids().method_defined, &[name]) == Qtrue as VALUE
    })
}
