//! The rules of `src/http2/signal.rs`: what any thread brings is done by somebody, whoever drives at that moment.

use crate::check;
use crate::sync::{AtomicUsize, Mutex, Ordering::SeqCst};
use shuttle::thread;
use std::sync::Arc;

#[path = "../../src/http2/signal.rs"]
mod code;

/// A session whose threads bring pieces to be sent.
#[derive(Default)]
struct World {
    signal: code::Signal,
    brought: AtomicUsize,
    /// How many were sent.
    session: Mutex<usize>,
}

impl World {
    /// As `Session::drive`: until nothing more was brought meanwhile.
    fn drive(&self, sent: &mut usize) {
        loop {
            self.signal.clear();
            *sent = self.brought.load(SeqCst);
            if !self.signal.is_set() {
                return;
            }
        }
    }

    /// As `Session::push`, of a thread that has written.
    fn push(&self) {
        self.brought.fetch_add(1, SeqCst);
        self.signal.set();
        self.signal.serve(&self.session, |sent| self.drive(sent));
    }

    /// As `Session::pull`, of the poller.
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
        assert_eq!(*world.session.lock(), 4, "nobody sends the rest");
    });
}
