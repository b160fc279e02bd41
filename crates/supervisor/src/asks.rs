//! Requests to the supervisor from other threads of its process.

use fairlead_system::wake_up;
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
            bell: Arc::new(wake_up::open()?),
        })
    }

    /// Adds a request: its name, as processes send it.
    pub fn push(&self, request: &str) {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request.into());
        wake_up::ring(&*self.bell);
    }

    /// Takes all requests.
    pub fn take(&self) -> Vec<String> {
        wake_up::take(&*self.bell);
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsFd for Asks {
    /// Readable while the queue has requests.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}
