//! The spooler: one native thread of each worker that writes temporary files: what responses leave behind, and the bodies of
//! large requests.
//!
//! A write to a slow disk blocks whoever does it, and so may the end of a large file: neither shall be felt by requests, so no
//! other thread writes to the temporary folder. Each gets a turn, in order.

use super::spooled::{Moved, Spooled};
use super::Spool;
use crate::limits::descriptors::Counted;
use crate::work_queue::Turn;
use crate::worker::Worker;
use std::fs::File;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Bytes read from a socket at a time.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Parts of a response that are written in one turn.
const PARTS_A_TURN: usize = 4;

/// How often an idle spooler looks whether its engine is still there, should it have gone without being stopped.
const LOOK: Duration = Duration::from_secs(60);

/// How often it looks whether there is memory to be given back, after much was in use.
const LOOK_AT_MEMORY: Duration = Duration::from_secs(1);

/// A request with a large body, of which the spooler stores a slice in each turn. Dropping it closes its connection.
pub(crate) trait Upload: Send + std::fmt::Debug {
    /// Stores what has come, and hands the connection on.
    fn store(self: Box<Self>, scratch: &mut [u8]);
}

/// What it does in one turn.
#[derive(Debug)]
pub(super) enum Task {
    Response(Weak<Spooled>),
    Upload(Box<dyn Upload>),
    /// A file that nobody needs any more, and its length.
    Discard(Option<Arc<Counted<File>>>, u64),
}

impl Spool {
    /// Starts the thread; it holds no engine alive.
    pub(crate) fn start(self: &Arc<Self>, worker: &Arc<Worker>) -> std::io::Result<()> {
        let spool = Arc::clone(self);
        let worker = Arc::downgrade(worker);
        std::thread::Builder::new()
            .name("fairlead spooler".into())
            .spawn(move || spool.run(&worker))?;
        Ok(())
    }

    /// Ends the thread; the connections that are left are closed.
    pub(crate) fn stop(&self) {
        for task in self.tasks.stop() {
            match task {
                Task::Discard(file, length) => self.close_file(file, length),
                Task::Upload(_) | Task::Response(_) => {}
            }
        }
    }

    /// Has an upload stored. It comes back when the spooler has ended.
    pub(crate) fn store(&self, upload: Box<dyn Upload>) -> Result<(), Box<dyn Upload>> {
        match self.tasks.push(Task::Upload(upload)) {
            Err(Task::Upload(upload)) => Err(upload),
            _ => Ok(()),
        }
    }

    /// Whether something would go to the disk if its total allowed it.
    pub(crate) fn is_disk_full(&self) -> bool {
        !self.stalled.lock().is_empty()
    }

    pub(super) fn enqueue(&self, spooled: &Arc<Spooled>) {
        let _ = self.tasks.push(Task::Response(Arc::downgrade(spooled)));
    }

    /// Others may wait for the room that it takes: it comes first.
    pub(super) fn discard(&self, file: Option<Arc<Counted<File>>>, length: u64) {
        if let Err(Task::Discard(file, length)) = self.tasks.push_front(Task::Discard(file, length)) {
            self.close_file(file, length);
        }
    }

    fn run(&self, worker: &Weak<Worker>) {
        let mut scratch = vec![0; SCRATCH_BYTES];
        loop {
            let may_recede = self.totals.may_recede();
            let next = self.tasks.next(if may_recede { LOOK_AT_MEMORY } else { LOOK });
            let Some(worker) = worker.upgrade() else { return };
            match next {
                Turn::Of(Task::Response(spooled)) => {
                    worker.guard("the spooler", || self.move_parts(&spooled));
                }
                Turn::Of(Task::Upload(upload)) => {
                    worker.guard("the spooler", || upload.store(&mut scratch));
                }
                Turn::Of(Task::Discard(file, length)) => self.close_file(file, length),
                Turn::Idle if self.totals.has_receded() => (self.trim)(),
                Turn::Idle => {}
                Turn::Over => return,
            }
        }
    }

    fn move_parts(&self, response: &Weak<Spooled>) {
        // Gone, or sent: nothing is left to be done.
        let Some(spooled) = response.upgrade() else { return };
        for _ in 0..PARTS_A_TURN {
            match spooled.move_part() {
                Moved::Part => {}
                Moved::Nothing => return,
                Moved::NoRoom => {
                    let mut stalled = self.stalled.lock();
                    stalled.retain(|response| response.strong_count() > 0);
                    stalled.push_back(Weak::clone(response));
                    return;
                }
            }
        }
        self.enqueue(&spooled);
    }

    fn close_file(&self, file: Option<Arc<Counted<File>>>, length: u64) {
        drop(file);
        self.free_disk(length);
    }

    /// Gives a part of the disk back. Only the spooler does this, so that none stalls in between.
    pub(super) fn free_disk(&self, bytes: u64) {
        self.totals.free_disk(bytes);
        let mut stalled = self.stalled.lock();
        // Those that came first are first again.
        while let Some(response) = stalled.pop_back() {
            let _ = self.tasks.push_front(Task::Response(response));
        }
    }
}
