//! The Ruby seam: the only crate that knows Ruby, and the only one with `unsafe` code.
//!
//! # Layout
//! * `native/`: the Ruby classes under `Fairlead::Native`, one file each.
//! * `rack_app.rs`: the [`fairlead_engine::App`] that calls a Rack application; `request/` makes its env, `response/` writes
//!   what it returns.
//! * `events.rs` calls what a client's handler has (`callbacks.rs`); `hijack.rs` gives sockets away.
//! * `fork.rs` tells the engine when this process is a child of the one that serves.
//! * `gvl.rs`: everything about the GVL, protection from exceptions, and the hook that tells when a thread waits.
//!
//! # Rules
//! * Ruby is called only with the GVL held and inside `gvl::protect`.
//! * No Rust value with a destructor lives across a Ruby call that can raise: an exception jumps over it.
//! * A Ruby value in Rust memory is marked; all others live on the stack, where the collector sees them.
//! * A panic never crosses into Ruby.

#![expect(missing_docs, reason = "the one public item is the initialiser that a macro makes")]

mod callbacks;
mod events;
mod fork;
mod gvl;
mod hijack;
mod memory;
mod native;
mod rack_app;
mod request;
mod response;
mod strings;

use magnus::{Error, Ruby};

#[magnus::init(name = "fairlead")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    strings::init();
    gvl::init();
    fork::init();
    native::init(ruby)
}
