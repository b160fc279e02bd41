//! The binding to Ruby: the only crate that knows Ruby. `fairlead-shared-memory` is the only other one with `unsafe` code.
//!
//! # Layout
//! * `gvl/`: the GVL: gives it up, takes it, and hooks its waits. `protect.rs`: stops Ruby exceptions.
//! * `rack/`: a request. `app.rs` is the [`fairlead_engine::App`] that calls a Rack application, `request.rs` runs a
//!   request, `env.rs` and `template.rs` make its env, `response/` writes the response of the application, `hijack.rs`
//!   gives sockets away, `errors.rs` references exceptions. `response_ref.rs` guards the Ruby objects that lead to a response.
//! * `realtime/`: connections after an upgrade. `client.rs` is `Fairlead::Client`; `events.rs` calls its handler.
//! * `native/`: the methods that `lib/` calls, above all the engine.
//! * `objects.rs`: calls methods. `classes.rs`: classes that the extension needs. `strings.rs`: Strings, and the
//!   names that live as long as the process. `memory.rs`: the allocator. `fork.rs` tells the engine when this process
//!   is a child of the process that serves.
//!
//! # Rules
//! * Ruby is called only with the GVL held, which a `&Ruby` proves (see `gvl`), and inside `protect`.
//! * No Rust value with a destructor lives across a Ruby call that can raise: an exception jumps over it.
//! * A Ruby value in Rust memory is marked; all others live on the stack, where the collector sees them.
//! * A panic never crosses into Ruby.

#![expect(missing_docs, reason = "the one public item is the initialiser that a macro makes")]

mod classes;
mod collections;
mod fork;
mod gvl;
mod memory;
mod native;
mod objects;
mod process_end;
mod protect;
mod rack;
mod realtime;
mod send_queue;
mod strings;

use magnus::{Error, Ruby};

#[magnus::init(name = "fairlead")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    strings::init(ruby);
    gvl::init(ruby);
    fork::init();
    send_queue::init();
    native::init(ruby)
}
