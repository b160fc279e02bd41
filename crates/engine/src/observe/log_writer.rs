//! The logs: lines are queued in memory and written by a native thread, so that neither a slow disk nor a full pipe
//! delays a request. The thread starts with the first line. Lines that cannot be written in time are dropped and
//! counted.

use crate::clock::FAREWELL;
use crate::config::{Format, Logs};
use parking_lot::{Condvar, Mutex};
use std::fmt::{Arguments, Write as _};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// Most bytes that may wait for the writer; further lines are dropped.
const MOST_PENDING: usize = 1024 * 1024;

/// Lines are written in batches, delayed by at most this time.
const BATCH_TIME: Duration = Duration::from_millis(20);

pub(crate) struct LogWriter {
    shared: Arc<WriterState>,
    /// What the thread takes when it starts.
    files: Mutex<Option<LogFiles>>,
    access: Option<Format>,
    prefix: String,
}

struct LogFiles {
    access: Option<BorrowedFd<'static>>,
    errors: Option<BorrowedFd<'static>>,
}

#[derive(Default)]
struct WriterState {
    pending: Mutex<Pending>,
    changed: Condvar,
    written: Condvar,
    lost: AtomicU64,
}

#[derive(Default)]
struct Pending {
    access: Vec<u8>,
    errors: Vec<u8>,
    /// Whether the writer sleeps until the next line.
    asleep: bool,
    closed: bool,
    /// Whether the writer has taken lines and not yet written them.
    writing: bool,
}

impl LogWriter {
    pub(crate) fn new(logs: Logs) -> LogWriter {
        let (access, format) = logs.access.unzip();
        LogWriter {
            shared: Arc::default(),
            files: Mutex::new(Some(LogFiles {
                access,
                errors: logs.errors,
            })),
            access: format,
            prefix: logs.prefix,
        }
    }

    /// The format of access lines, if there is an access log.
    pub(crate) fn access_format(&self) -> Option<Format> {
        self.access
    }

    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Relaxed)
    }

    /// Adds an access line, which `write` writes.
    pub(crate) fn access(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.add(|pending| &mut pending.access, write);
    }

    /// Adds an error line.
    pub(crate) fn error(&self, message: Arguments<'_>) {
        let mut line = String::with_capacity(120);
        let _ = writeln!(line, "{}{message}", self.prefix);
        self.add(
            |pending| &mut pending.errors,
            |buffer| buffer.extend_from_slice(line.as_bytes()),
        );
    }

    /// Waits until every line is written, but for a limited time.
    pub(crate) fn flush(&self) {
        self.shared.flush(false);
    }

    fn add(&self, which: impl FnOnce(&mut Pending) -> &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut pending = self.shared.pending.lock();
        let buffer = which(&mut pending);
        if buffer.len() >= MOST_PENDING {
            self.shared.lost.fetch_add(1, Relaxed);
            return;
        }
        write(buffer);
        if pending.asleep {
            pending.asleep = false;
            self.shared.changed.notify_one();
        }
        drop(pending);
        self.start_thread();
    }

    fn start_thread(&self) {
        if let Some(mut files) = self.files.try_lock() {
            if let Some(files) = files.take() {
                let shared = Arc::clone(&self.shared);
                let named = std::thread::Builder::new().name("fairlead log".into());
                let _ = named.spawn(move || write_lines(&shared, files));
            }
        }
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.shared.flush(true);
    }
}

impl WriterState {
    fn flush(&self, close: bool) {
        let mut pending = self.pending.lock();
        pending.closed |= close;
        self.changed.notify_one();
        let unwritten = |pending: &mut Pending| pending.writing || !pending.is_empty();
        self.written.wait_while_for(&mut pending, unwritten, FAREWELL);
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.access.is_empty() && self.errors.is_empty()
    }
}

fn write_lines(shared: &WriterState, files: LogFiles) {
    loop {
        let mut pending = shared.pending.lock();
        while pending.is_empty() {
            if pending.closed {
                return;
            }
            pending.asleep = true;
            shared.changed.wait(&mut pending);
        }
        let access = std::mem::take(&mut pending.access);
        let errors = std::mem::take(&mut pending.errors);
        pending.writing = true;
        drop(pending);
        write_all(files.access, &access);
        write_all(files.errors, &errors);
        let mut pending = shared.pending.lock();
        pending.writing = false;
        shared.written.notify_all();
        if !pending.closed {
            shared.changed.wait_for(&mut pending, BATCH_TIME);
        }
    }
}

fn write_all(fd: Option<BorrowedFd<'_>>, mut bytes: &[u8]) {
    let Some(fd) = fd else { return };
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
