//! Responses that wait for their clients: the memory and disk that all of them together may take (`totals.rs`), the
//! parts of one response (`spooled.rs`), the thread that writes temporary files (`spooler.rs`), and the choice of the
//! slow reader that is aborted when requests wait (`pressure.rs`).

mod pressure;
mod spooled;
mod spooler;
mod totals;

pub(crate) use pressure::{Decision, GivesWay, ReadRate, Relief, Slowness, GRACE};
pub(crate) use spooled::{SavedPart, SavedSpool, Spooled};
pub(crate) use spooler::Upload;
pub(crate) use totals::{Charge, Claim};

use crate::clock::Millis;
use crate::config::Config;
use crate::limits::budget::{Budget, Kind};
use crate::limits::descriptors::{Counted, Descriptors};
use crate::sync::Mutex;
use crate::work_queue::WorkQueue;
use pressure::Starved;
use rustix::io::Errno;
use spooled::PART_BYTES;
use spooler::Task;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use totals::Totals;

/// The spool of one worker, shared by its threads.
#[derive(Debug)]
pub(crate) struct Spool {
    totals: Arc<Totals>,
    directory: PathBuf,
    descriptors: Arc<Descriptors>,
    tasks: WorkQueue<Task>,
    /// Responses that currently have no room on the disk.
    stalled: Mutex<VecDeque<Weak<Spooled>>>,
    starved: Mutex<Starved>,
    /// The time when the lack of descriptors was last logged.
    lack_logged: Mutex<Option<Millis>>,
    /// Returns freed memory to the system.
    trim: fn(),
}

impl Spool {
    pub(crate) fn new(config: &Config) -> Arc<Spool> {
        Arc::new(Spool {
            totals: Totals::new(config.response_memory_total_bytes, config.response_disk_total_bytes),
            directory: config.temp_dir.clone(),
            descriptors: Arc::clone(&config.descriptors),
            tasks: WorkQueue::default(),
            stalled: Mutex::default(),
            starved: Mutex::default(),
            lack_logged: Mutex::default(),
            trim: config.trim_memory,
        })
    }

    /// Joins the queue for memory for one part.
    pub(crate) fn wait_for_memory(&self) -> Claim {
        self.totals.wait_for_memory(PART_BYTES as u64)
    }

    /// Counts memory that a connection holds for its client.
    pub(crate) fn count_memory(&self, bytes: usize, budget: Option<&Arc<Budget>>) -> Charge {
        self.totals.count_memory(bytes as u64, budget)
    }

    /// Returns true if unsent responses exceed their memory limit, so that a client has to give way. `comes_back`:
    /// bytes that will be free soon.
    pub(crate) fn is_memory_exceeded(&self, comes_back: u64) -> bool {
        self.totals.is_memory_exceeded(comes_back)
    }

    /// The same, but the limit is exceeded by so much that no client may be spared.
    pub(crate) fn is_memory_far_exceeded(&self, comes_back: u64) -> bool {
        self.totals.is_memory_far_exceeded(comes_back)
    }

    /// Returns true if `bytes` is a large part of the memory for unsent responses.
    pub(crate) fn is_large_part(&self, bytes: u64) -> bool {
        self.totals.is_large_part(bytes)
    }

    /// Memory that unsent responses take.
    pub(crate) fn memory(&self) -> u64 {
        self.totals.memory()
    }

    /// Disk space that unsent responses take.
    pub(crate) fn disk(&self) -> u64 {
        self.totals.disk()
    }

    pub(crate) fn is_memory_scarce(&self) -> bool {
        self.totals.is_memory_scarce()
    }

    /// Memory for one part: granted by the claim, or, without a claim, free memory, if no thread waits for it.
    fn memory_for_part(&self, claim: &mut Option<Claim>, budget: Option<&Arc<Budget>>) -> Option<Charge> {
        let charge = match claim {
            Some(claim) => claim.take(budget),
            None => self.totals.take_memory(PART_BYTES as u64, budget),
        };
        if charge.is_some() {
            *claim = None;
        }
        charge
    }

    /// Returns true if an HTTP/2 connection has as many files as it may have.
    fn has_its_files(&self, budget: Option<&Arc<Budget>>) -> bool {
        budget.is_some_and(|budget| budget.is_used_up(Kind::Files))
    }

    fn new_file(&self, budget: Option<&Arc<Budget>>) -> io::Result<Arc<Counted<File>>> {
        // The other responses of the HTTP/2 connection stay in memory, where its budget limits them.
        if self.has_its_files(budget) {
            return Err(Errno::MFILE.into());
        }
        let permit = self.descriptors.for_file().ok_or(Errno::MFILE)?.with_budget(budget);
        let file = tempfile::tempfile_in(&self.directory)?;
        Ok(Arc::new(Counted::new(file, permit)))
    }
}
