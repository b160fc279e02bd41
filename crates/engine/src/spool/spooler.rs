//! The spooler: one native thread per worker that writes temporary files: bytes of responses that clients have not
//! taken, and the bodies of large requests.
//!
//! A write to a slow disk blocks its thread, and so may freeing a large file. Requests must not wait for either, so no
//! other thread writes to the temporary folder. Each task gets a turn, in order.

use super::spooled::{Moved, Spooled};
use super::Spool;
use crate::clock::Millis;
use crate::limits::descriptors::Counted;
use crate::observe::excess::About;
use crate::transport::SCRATCH_BYTES;
use crate::work_queue::{Item, LOOK};
use crate::worker::Worker;
use std::fs::File;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Parts of a response that are written in one turn.
const PARTS_A_TURN: usize = 4;

/// Interval between checks for memory that can be returned to the system, after much was in use.
const LOOK_AT_MEMORY: Duration = Duration::from_secs(1);

/// Minimum time between two log lines about too few descriptors.
const QUIET: Duration = Duration::from_secs(60);

/// A request with a large body: the spooler stores a piece of it in each turn. Dropping it closes its connection.
pub(crate) trait Upload: Send + std::fmt::Debug {
    /// Stores the bytes that have arrived, and passes the connection on.
    fn store(self: Box<Self>, scratch: &mut [u8]);
}

/// The work of the spooler in one turn.
#[derive(Debug)]
pub(super) enum Task {
    Response(Weak<Spooled>),
    Upload(Box<dyn Upload>),
    /// Closes an unneeded file, and frees its disk space.
    Discard(Option<Arc<Counted<File>>>, u64),
}

impl Spool {
    /// Starts the thread, which does not keep the engine alive.
    pub(crate) fn start(self: &Arc<Self>, worker: &Arc<Worker>) -> std::io::Result<()> {
        let spool = Arc::clone(self);
        let worker = Arc::downgrade(worker);
        std::thread::Builder::new()
            .name("fairlead spooler".into())
            .spawn(move || spool.run(&worker))?;
        Ok(())
    }

    /// Ends the thread; the remaining connections are closed.
    pub(crate) fn stop(&self) {
        for task in self.tasks.stop() {
            match task {
                Task::Discard(file, length) => self.close_file(file, length),
                Task::Upload(_) | Task::Response(_) => {}
            }
        }
    }

    /// Queues an upload to be stored. Returns it if the spooler has ended.
    pub(crate) fn store(&self, upload: Box<dyn Upload>) -> Result<(), Box<dyn Upload>> {
        match self.tasks.push(Task::Upload(upload)) {
            Err(Task::Upload(upload)) => Err(upload),
            _ => Ok(()),
        }
    }

    /// Returns true if a response waits for space within the disk total.
    pub(crate) fn is_disk_full(&self) -> bool {
        !self.stalled.lock().is_empty()
    }

    pub(super) fn enqueue(&self, spooled: &Arc<Spooled>) {
        let _ = self.tasks.push(Task::Response(Arc::downgrade(spooled)));
    }

    /// Discards a file, before other tasks, because others may wait for its space.
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
                Item::Next(Task::Response(spooled)) => {
                    worker.guard("the spooler", || self.move_parts(&spooled, &worker));
                }
                Item::Next(Task::Upload(upload)) => {
                    worker.guard("the spooler", || upload.store(&mut scratch));
                }
                Item::Next(Task::Discard(file, length)) => self.close_file(file, length),
                Item::Idle if self.totals.has_receded() => (self.trim)(),
                Item::Idle => {}
                Item::Stopped => return,
            }
        }
    }

    fn move_parts(&self, response: &Weak<Spooled>, worker: &Worker) {
        // The connection was closed, or everything was sent.
        let Some(spooled) = response.upgrade() else { return };
        for _ in 0..PARTS_A_TURN {
            match spooled.move_part() {
                Moved::Part => {}
                Moved::Nothing => return,
                Moved::Failed(kind) => worker.log.about_peer(
                    About::File,
                    None,
                    format_args!(
                        "keeps a response to a slow client in memory: {kind} in temp_dir ({})",
                        self.directory.display()
                    ),
                ),
                Moved::NoDescriptor => self.log_lack_of_descriptors(worker),
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

    /// Logs the lack of descriptors, which concerns all slow clients at once, so that one line is enough for some time.
    fn log_lack_of_descriptors(&self, worker: &Worker) {
        let now = Millis::now();
        let mut logged = self.lack_logged.lock();
        if logged.is_some_and(|logged| now - logged < QUIET) {
            return;
        }
        *logged = Some(now);
        drop(logged);
        worker.log.about_peer(
            About::File,
            None,
            format_args!(
                "keeps responses to slow clients in memory: too few descriptors for temporary files (the server has {} for files); \
                 raise the limit of open files (ulimit -Hn, LimitNOFILE)",
                self.descriptors.most_files()
            ),
        );
    }

    fn close_file(&self, file: Option<Arc<Counted<File>>>, length: u64) {
        drop(file);
        self.free_disk(length);
    }

    /// Gives disk space back. Only the spooler calls this, so no response can stall in between.
    pub(super) fn free_disk(&self, bytes: u64) {
        self.totals.free_disk(bytes);
        let mut stalled = self.stalled.lock();
        // The responses that stalled first are first again.
        while let Some(response) = stalled.pop_back() {
            let _ = self.tasks.push_front(Task::Response(response));
        }
    }
}
