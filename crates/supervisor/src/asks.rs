//! Requests to the supervisor from other threads of its process.

use rustix::event::{eventfd, EventfdFlags};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// Requests in the queue of the loop. Each clone leads to the same queue.
#[derive(Clone, Debug)]
pub struct Asks {
    waiting: Arc<Mutex<Vec<String>>>,
    bell: Arc<OwnedFd>,
}

impl Asks {
    /// An empty queue.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn new() -> io::Result<Asks> {
        Ok(Asks {
            waiting: Arc::default(),
            bell: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?),
        })
    }

    /// Adds a request: its name, as processes send it.
    pub fn push(&self, request: &str) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.into());
        let _ = rustix::io::write(&*self.bell, &1u64.to_ne_bytes());
    }

    /// Takes all requests.
    pub fn take(&self) -> Vec<String> {
        let _ = rustix::io::read(&*self.bell, &mut [0; 8]);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsFd for Asks {
    /// Readable while the queue has requests.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
