//! The rules of `src/http2/signal.rs`: the current driver processes the work of any thread.

use crate::check;
use crate::sync::{AtomicUsize, Mutex, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

#[path = "../../src/http2/signal.rs"]
mod code;

/// A session with threads that add pieces to send.
#[derive(Default)]
struct World {
    signal: code::Signal,
    brought: AtomicUsize,
    /// Number of sent pieces.
    session: Mutex<usize>,
}

impl World {
    /// Like `Session::drive`: runs until no more pieces were added meanwhile.
    fn drive(&self, sent: &mut usize) {
        loop {
            self.signal.clear();
            *sent = self.brought.load(SeqCst);
            if !self.signal.is_set() {
                return;
            }
        }
    }

    /// Like `Session::push`, for a thread that has written.
    fn push(&self) {
        self.brought.fetch_add(1, SeqCst);
        self.signal.set();
        self.signal.serve(&self.session, |sent| self.drive(sent));
    }

    /// Like `Session::pull`, for the poller.
    fn pull(&self) {
        let mut sent = self.session.lock();
        self.drive(&mut sent);
        drop(sent);
        self.signal.serve(&self.session, |sent| self.drive(sent));
    }
}

#[test]
fn what_any_thread_brings_is_sent() {
    check("a session that several threads drive", || {
        let world = Arc::new(World::default());
        let pushes = |world: &World| (0..2).for_each(|_| world.push());
        let pulls = |world: &World| (0..2).for_each(|_| world.pull());
        let threads: [fn(&World); 3] = [pushes, pushes, pulls];
        let threads = threads.map(|code| {
            let world = Arc::clone(&world);
            thread::spawn(move || code(&world))
        });
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(*world.session.lock(), 4, "no thread sends the rest");
    });
}
