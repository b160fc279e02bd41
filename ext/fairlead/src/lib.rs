//! The Ruby seam: the only crate that knows Ruby, and the only one with `unsafe` code.
//!
//! # Layout
//! * `gvl/`: the GVL, who gives it up, and the hook that tells when a thread waits. `protect.rs`: what Ruby raises.
//! * `rack/`: a request. `app.rs` is the [`fairlead_engine::App`] that calls a Rack application, `request.rs` runs a
//!   request, `env.rs` and `template.rs` make its env, `response/` writes what the application returns, `hijack.rs`
//!   gives sockets away, `errors.rs` deals with what was raised. `handle.rs` guards what Ruby objects have of a response.
//! * `realtime/`: what comes after an upgrade. `client.rs` is `Fairlead::Client`; `events.rs` calls its handler.
//! * `native/`: what `lib/` calls itself, the engine foremost.
//! * `objects.rs`: calls of methods. `classes.rs`: classes that the extension needs. `strings.rs`: Strings, and the
//!   names that live as long as the process. `memory.rs`: the allocator. `fork.rs` tells the engine when this process
//!   is a child of the one that serves.
//!
//! # Rules
//! * Ruby is called only with the GVL held, which a `&Ruby` says (see `gvl`), and inside `protect`.
//! * No Rust value with a destructor lives across a Ruby call that can raise: an exception jumps over it.
//! * A Ruby value in Rust memory is marked; all others live on the stack, where the collector sees them.
//! * A panic never crosses into Ruby.

#![expect(missing_docs, reason = "the one public item is the initialiser that a macro makes")]

mod classes;
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
