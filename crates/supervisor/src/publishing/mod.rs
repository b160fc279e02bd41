//! The publish socket: processes beside the server, such as jobs and consoles, publish through it.
//!
//! A thread of its own accepts, reads and publishes, because a worker with a full mailbox makes it wait. All connections then
//! wait, so no process overtakes another one. The messages are in `frame.rs`, one process in `connection.rs`, the thread in
//! `server.rs`.

mod connection;
mod frame;
mod server;

use crate::listeners::Listener;
use crate::log::Log;
use fairlead_system::wake_up;
use server::Server;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::sync::Arc;

pub use frame::Request;

/// Publishes a message. Returns the number of workers that did not take it in time.
pub type Publish = Box<dyn FnMut(&Request<'_>) -> usize + Send>;

/// The stack of the thread.
const STACK: usize = 256 * 1024;

/// A thread that publishes for other processes. Dropping it ends the thread, after the request that it handles.
#[derive(Debug)]
pub struct Publishing {
    listener: Listener,
    order: Arc<Order>,
}

/// The orders to the thread.
#[derive(Debug)]
struct Order {
    wish: AtomicU8,
    /// True if the thread has obeyed an order to rest.
    rests: AtomicBool,
    bell: OwnedFd,
}

/// The wanted state of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Serve,
    /// No connection, because another program is about to take over. Processes connect again, and wait for it.
    Rest,
    End,
}

impl Publishing {
    /// Begins to accept.
    ///
    /// # Errors
    /// If descriptors or threads are short.
    pub fn start(listener: &Listener, publish: Publish, log: Log) -> io::Result<Publishing> {
        let order = Arc::new(Order::new()?);
        let socket = listener.copy()?;
        let place = listener.settings.address.clone();
        let server = Server::new(socket, place, publish, Arc::clone(&order), log)?;
        let thread = std::thread::Builder::new().name("fairlead publish".into());
        thread.stack_size(STACK).spawn(move || server.run())?;
        let listener = listener.clone();
        Ok(Publishing { listener, order })
    }

    /// Returns true if it accepts on this listener.
    pub fn accepts_on(&self, listener: &Listener) -> bool {
        self.listener.is(listener)
    }

    /// Closes the connections, each after its last reply, and accepts no others. Does not wait.
    pub fn rest(&self) {
        self.order.give(Wish::Rest);
    }

    /// Serves again.
    pub fn resume(&self) {
        self.order.give(Wish::Serve);
    }

    /// Returns true if nothing is under way.
    pub fn is_resting(&self) -> bool {
        self.order.rests.load(SeqCst)
    }
}

impl Drop for Publishing {
    fn drop(&mut self) {
        self.order.give(Wish::End);
    }
}

impl Order {
    fn new() -> io::Result<Order> {
        Ok(Order {
            wish: AtomicU8::new(Wish::Serve as u8),
            rests: AtomicBool::new(false),
            bell: wake_up::open()?,
        })
    }

    fn give(&self, wish: Wish) {
        if self.wish.swap(wish as u8, SeqCst) != wish as u8 {
            wake_up::ring(&self.bell);
        }
    }

    fn wish(&self) -> Wish {
        wake_up::take(&self.bell);
        match self.wish.load(SeqCst) {
            wish if wish == Wish::Serve as u8 => Wish::Serve,
            wish if wish == Wish::Rest as u8 => Wish::Rest,
            _ => Wish::End,
        }
    }

    fn is_obeyed(&self, rests: bool) {
        self.rests.store(rests, SeqCst);
    }
}

impl AsFd for Order {
    /// Readable after an order.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
