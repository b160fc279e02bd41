//! The thread that writes the lines of one stream.

use super::form::Form;
use super::queue::Queue;
use crate::wording::reason;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Stack of the thread, in bytes.
const STACK: usize = 64 * 1024;

/// One stream, and its queue. When it is dropped, the thread ends after the queued lines.
pub(super) struct Writer {
    shared: Arc<Shared>,
}

struct Shared {
    stream: Box<dyn AsFd + Send + Sync>,
    form: Arc<Mutex<Form>>,
    pending: Mutex<Pending>,
    changed: Condvar,
    written: Condvar,
}

#[derive(Default)]
struct Pending {
    queue: Queue,
    /// True while the thread has a line that is not written yet.
    is_writing: bool,
    /// True if there is a thread.
    is_running: bool,
    is_closed: bool,
}

/// Losses so far, and the state of the stream.
#[derive(Default)]
struct Progress {
    /// Number of lines that the system did not accept, and the reason, until a line reports them.
    lost: u64,
    reason: String,
    /// True if the stream ends in the middle of a line.
    is_torn: bool,
}

impl Writer {
    /// Starts the thread now if that is possible, otherwise with the next line.
    pub(super) fn new(stream: impl AsFd + Send + Sync + 'static, form: Arc<Mutex<Form>>) -> Writer {
        let shared = Arc::new(Shared {
            stream: Box::new(stream),
            form,
            pending: Mutex::default(),
            changed: Condvar::new(),
            written: Condvar::new(),
        });
        let writer = Writer { shared };
        writer.run(&mut writer.shared.pending());
        writer
    }

    /// Adds a line, or drops it if the queue is full.
    pub(super) fn add(&self, line: String) {
        let mut pending = self.shared.pending();
        pending
            .queue
            .add(line, |lines, reason| self.shared.about_dropped(lines, reason));
        self.run(&mut pending);
        self.shared.changed.notify_one();
    }

    /// Waits until every line is written. Returns false if lines are left at the deadline, or without a thread.
    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let mut pending = self.shared.pending();
        self.run(&mut pending);
        while pending.is_running && !pending.is_done() {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return false;
            }
            let waited = self.shared.written.wait_timeout(pending, rest);
            pending = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        pending.is_done()
    }

    /// Starts the thread, unless there is one. If no thread can be started, the lines wait for the next attempt.
    fn run(&self, pending: &mut Pending) {
        if pending.is_running {
            return;
        }
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name("fairlead log".into())
            .stack_size(STACK);
        pending.is_running = thread.spawn(move || Running(&shared).write_lines()).is_ok();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.pending().is_closed = true;
        self.shared.changed.notify_one();
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn about_dropped(&self, lines: u64, reason: &str) -> String {
        let form = *self.form.lock().unwrap_or_else(PoisonError::into_inner);
        form.about_dropped(lines, reason)
    }

    /// Waits for the next line; `None` at the end.
    fn next(&self) -> Option<String> {
        let mut pending = self.pending();
        pending.is_writing = false;
        loop {
            if let Some(line) = pending.queue.next(|lines, reason| self.about_dropped(lines, reason)) {
                pending.is_writing = true;
                return Some(line);
            }
            self.written.notify_all();
            if pending.is_closed {
                return None;
            }
            pending = self.changed.wait(pending).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Pending {
    fn is_done(&self) -> bool {
        self.queue.is_empty() && !self.is_writing
    }
}

/// The thread. If it panics, the next line starts another one.
struct Running<'a>(&'a Shared);

impl Running<'_> {
    fn write_lines(&self) {
        let mut progress = Progress::default();
        while let Some(line) = self.0.next() {
            if progress.lost > 0 {
                let note = self.0.about_dropped(progress.lost, &progress.reason);
                if progress.write(self.0.stream.as_fd(), &note).is_ok() {
                    progress.lost = 0;
                }
            }
            if let Err(error) = progress.write(self.0.stream.as_fd(), &line) {
                progress.lost += 1;
                progress.reason = reason(&error.into());
            }
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut pending = self.0.pending();
        (pending.is_running, pending.is_writing) = (false, false);
        self.0.written.notify_all();
    }
}

impl Progress {
    /// Writes a line with one call, so that lines of several processes do not mix.
    fn write(&mut self, stream: BorrowedFd<'_>, line: &str) -> Result<(), Errno> {
        if self.is_torn {
            write_all(stream, b"\n").map_err(|(_, error)| error)?;
            self.is_torn = false;
        }
        write_all(stream, line.as_bytes()).map_err(|(written, error)| {
            self.is_torn = written > 0;
            error
        })
    }
}

/// Waits for a pipe that accepts nothing now, even if another process has made it non-blocking. On failure, returns the
/// number of bytes written before.
fn write_all(stream: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), (usize, Errno)> {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(stream, &bytes[written..]) {
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => _ = poll(&mut [PollFd::new(&stream, PollFlags::OUT)], None),
            Err(error) => return Err((written, error)),
        }
    }
    Ok(())
}
