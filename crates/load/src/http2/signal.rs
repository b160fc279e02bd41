//! A waker that raises a flag, for an event loop that checks the flags after each step.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

/// A flag and the waker that raises it. It begins raised, because a new future needs its first poll.
#[derive(Debug)]
pub(super) struct Signal {
    flag: Arc<Flag>,
    waker: Waker,
}

#[derive(Debug)]
struct Flag(AtomicBool);

impl Signal {
    pub(super) fn new() -> Signal {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        Signal { flag, waker }
    }

    pub(super) fn raise(&self) {
        self.flag.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_raised(&self) -> bool {
        self.flag.0.load(Ordering::Relaxed)
    }

    /// Lowers the flag; returns `true` if it was raised.
    pub(super) fn take(&self) -> bool {
        self.is_raised() && self.flag.0.swap(false, Ordering::Relaxed)
    }

    /// The context for polling a future, so that its waker raises the flag.
    pub(super) fn context(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Flag>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Flag>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_raises_the_flag_once() {
        let signal = Signal::new();
        assert!(signal.take(), "raised from the beginning");
        assert!(!signal.take());
        let waker = signal.context().waker().clone();
        waker.wake_by_ref();
        waker.wake();
        assert!(signal.take() && !signal.take());
    }
}
