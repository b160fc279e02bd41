//! One of the logs. Its lines are queued in memory and written by a separate thread, so that neither a slow disk nor a
//! full pipe delays a request, or another log. The thread starts with the first line. Lines that cannot be written, or
//! not in time, are lost and counted.

use crate::clock::Millis;
use crate::sync::{Condvar, Mutex};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most bytes that may wait for the writer; further lines are dropped.
pub(super) const MOST_PENDING: usize = 1024 * 1024;

/// Lines are written in batches, delayed by at most this time.
const BATCH_TIME: Duration = Duration::from_millis(20);

/// Generated lines: about other lines that were left out or lost.
pub(super) trait Notes: Send + 'static {
    /// The time when [`Notes::take`] has something to report, if ever.
    fn due(&self) -> Option<Millis>;

    /// Adds the lines that are due. `is_last`: there may be no later call.
    fn take(&mut self, now: Millis, is_last: bool, lines: &mut Vec<u8>);

    /// Takes note of a write; `is_whole` is false if it was cut off.
    fn note_write(&mut self, _is_whole: bool) {}
}

/// A log without generated lines.
#[derive(Default)]
pub(super) struct Nothing;

impl Notes for Nothing {
    fn due(&self) -> Option<Millis> {
        None
    }

    fn take(&mut self, _: Millis, _: bool, _: &mut Vec<u8>) {}
}

/// Lines and bytes that were lost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

/// The same, while it grows.
#[derive(Debug, Default)]
pub(super) struct Losses {
    lines: AtomicU64,
    bytes: AtomicU64,
}

impl Losses {
    pub(super) fn so_far(&self) -> Lost {
        Lost {
            lines: self.lines.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// Counts lines that were not written, or the rest of them.
    pub(super) fn add(&self, bytes: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', bytes).count();
        self.lines.fetch_add(lines as u64, Relaxed);
        self.bytes.fetch_add(bytes.len() as u64, Relaxed);
    }
}

/// A log. Shared with its thread.
pub(super) struct LogStream<N> {
    pending: Mutex<Pending<N>>,
    changed: Condvar,
    written: Condvar,
    losses: Arc<Losses>,
    /// Called after lines were lost.
    lost: Box<dyn Fn() + Send + Sync>,
    /// The file, until the thread takes it at its start.
    file: Mutex<Option<LogFile>>,
}

struct Pending<N> {
    lines: Vec<u8>,
    notes: N,
    /// The writer sleeps until the next line.
    asleep: bool,
    closed: bool,
    /// The writer has taken lines and not yet written them.
    writing: bool,
}

impl<N: Notes> LogStream<N> {
    /// `lost` is called after lines were lost.
    pub(super) fn new(
        file: LogFile,
        notes: N,
        losses: Arc<Losses>,
        lost: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(LogStream {
            pending: Mutex::new(Pending {
                lines: Vec::new(),
                notes,
                asleep: false,
                closed: false,
                writing: false,
            }),
            changed: Condvar::default(),
            written: Condvar::default(),
            losses,
            lost: Box::new(lost),
            file: Mutex::new(Some(file)),
        })
    }

    /// Adds the output of `write`.
    pub(super) fn add(self: &Arc<Self>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut pending = self.pending.lock();
        let is_closed = pending.closed;
        let length = pending.lines.len();
        write(&mut pending.lines);
        if length >= MOST_PENDING || is_closed {
            self.losses.add(&pending.lines[length..]);
            pending.lines.truncate(length);
            drop(pending);
            return (self.lost)();
        }
        self.wake(&mut pending);
        drop(pending);
        self.start_thread();
    }

    /// Changes the notes. The writer checks them if the time when they are due has changed.
    pub(super) fn note<T>(self: &Arc<Self>, change: impl FnOnce(&mut N) -> T) -> T {
        let mut pending = self.pending.lock();
        let was_due = pending.notes.due();
        let result = change(&mut pending.notes);
        if pending.notes.due() != was_due {
            self.wake(&mut pending);
            drop(pending);
            self.start_thread();
        }
        result
    }

    fn wake(&self, pending: &mut Pending<N>) {
        if pending.asleep {
            pending.asleep = false;
            self.changed.notify_one();
        }
    }

    fn start_thread(self: &Arc<Self>) {
        self.start_thread_by(|work| {
            let named = std::thread::Builder::new().name("fairlead log".into());
            named.spawn(work).map(drop)
        });
    }

    /// Starts the thread. If that fails, the file stays for the next line, which tries again.
    fn start_thread_by(self: &Arc<Self>, spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> std::io::Result<()>) {
        let Some(mut file) = self.file.try_lock() else { return };
        let Some(taken) = file.take() else { return };
        let (stream, parcel) = (Arc::clone(self), Arc::new(Mutex::new(Some(taken))));
        let for_thread = Arc::clone(&parcel);
        let work = move || {
            let taken = for_thread.lock().take();
            taken.into_iter().for_each(|file| stream.write_lines(file));
        };
        if spawn(Box::new(work)).is_err() {
            *file = parcel.lock().take();
        }
    }

    /// Closes the log: later lines are lost. A thread that has not been started yet never starts.
    pub(super) fn close(&self) {
        let mut pending = self.pending.lock();
        pending.closed = true;
        self.changed.notify_one();
        drop(pending);
        self.file.lock().take();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pending.lock().closed
    }

    /// Waits until every line is written. Returns false if some are not written at the deadline.
    pub(super) fn wait(&self, deadline: Instant) -> bool {
        let mut pending = self.pending.lock();
        let time = deadline.saturating_duration_since(Instant::now());
        let is_unwritten = |pending: &mut Pending<N>| pending.is_unwritten();
        !self.written.wait_while_for(&mut pending, is_unwritten, time)
    }

    fn write_lines(&self, mut file: LogFile) {
        while let Some(lines) = self.next() {
            let rest = file.write(&lines);
            let is_whole = rest.is_empty();
            if !is_whole {
                self.losses.add(rest);
            }
            let mut pending = self.pending.lock();
            pending.notes.note_write(is_whole);
            pending.writing = false;
            self.written.notify_all();
            if !pending.closed {
                self.changed.wait_for(&mut pending, BATCH_TIME);
            }
            drop(pending);
            if !is_whole {
                (self.lost)();
            }
        }
    }

    /// Waits for lines; `None` at the end.
    fn next(&self) -> Option<Vec<u8>> {
        let mut pending = self.pending.lock();
        pending.take_notes();
        while pending.lines.is_empty() {
            if pending.closed {
                return None;
            }
            pending.asleep = true;
            match pending.notes.due() {
                None => self.changed.wait(&mut pending),
                Some(due) => _ = self.changed.wait_for(&mut pending, due - Millis::now()),
            }
            pending.take_notes();
        }
        pending.writing = true;
        Some(std::mem::take(&mut pending.lines))
    }
}

impl<N: Notes> Pending<N> {
    fn take_notes(&mut self) {
        self.notes.take(Millis::now(), self.closed, &mut self.lines);
    }

    fn is_unwritten(&self) -> bool {
        self.writing || !self.lines.is_empty() || self.notes.due().is_some()
    }
}

/// The destination of the lines of a log.
pub(super) struct LogFile {
    fd: Option<BorrowedFd<'static>>,
    /// The destination of the lines of the other log.
    other: Option<BorrowedFd<'static>>,
    end: End,
    /// The end of the file, if both logs write to the same one.
    common_end: Arc<Mutex<End>>,
}

/// The end of a file.
#[derive(Default)]
pub(super) struct End {
    /// The file ends in the middle of a line, because the rest could not be written.
    is_torn: bool,
}

impl LogFile {
    /// Creates the destinations of two logs. They may be the same file, now or after it is reopened: then only one log
    /// writes at a time.
    pub(super) fn pair([one, two]: [Option<BorrowedFd<'static>>; 2]) -> [LogFile; 2] {
        let common_end = Arc::default();
        [(one, two), (two, one)].map(|(fd, other)| LogFile {
            fd,
            other,
            end: End::default(),
            common_end: Arc::clone(&common_end),
        })
    }

    /// Writes lines; returns the lines that could not be written.
    fn write<'a>(&mut self, lines: &'a [u8]) -> &'a [u8] {
        let Some(fd) = self.fd.filter(|_| !lines.is_empty()) else {
            return &[];
        };
        match self.is_common() {
            true => self.common_end.lock().write(fd, lines),
            false => self.end.write(fd, lines),
        }
    }

    fn is_common(&self) -> bool {
        let identity = |fd: Option<BorrowedFd<'static>>| fstat(fd?).ok().map(|stat| (stat.st_dev, stat.st_ino));
        let own = identity(self.fd);
        own.is_some() && own == identity(self.other)
    }
}

impl End {
    fn write<'a>(&mut self, fd: BorrowedFd<'_>, lines: &'a [u8]) -> &'a [u8] {
        if self.is_torn && write_all(fd, b"\n").is_empty() {
            self.is_torn = false;
        }
        if self.is_torn {
            return lines;
        }
        let rest = write_all(fd, lines);
        self.is_torn =
            !rest.is_empty() && !lines[..lines.len() - rest.len()].ends_with(b"\n") && rest.len() < lines.len();
        rest
    }
}

/// Writes bytes; returns the bytes that could not be written. Waits for a pipe that takes nothing now, even if another
/// process has made it non-blocking.
fn write_all<'a>(fd: BorrowedFd<'_>, mut bytes: &'a [u8]) -> &'a [u8] {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => _ = poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None),
            Err(_) => break,
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    #[test]
    fn a_log_whose_thread_cannot_be_started_begins_with_a_later_line() {
        let file: &'static File = Box::leak(Box::new(tempfile::tempfile().expect("a file")));
        let [log, _] = LogFile::pair([Some(file.as_fd()), None]);
        let log = LogStream::new(log, Nothing, Arc::default(), || {});
        log.start_thread_by(|_| Err(std::io::ErrorKind::WouldBlock.into()));
        log.add(|lines| lines.extend_from_slice(b"one\n"));
        assert!(log.wait(Instant::now() + std::time::Duration::from_secs(20)));
        let (mut text, mut reader) = (String::new(), file);
        std::io::Seek::rewind(&mut reader).expect("a file");
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "one\n");
    }

    #[test]
    fn a_torn_line_ends_before_the_next_one_begins_also_in_a_file_of_two_logs() {
        let file: &'static File = Box::leak(Box::new(tempfile::tempfile().expect("a file")));
        let [mut one, mut two] = LogFile::pair([Some(file.as_fd()), Some(file.as_fd())]);
        one.common_end.lock().is_torn = true;
        assert!(two.write(b"one\n").is_empty() && one.write(b"two\n").is_empty());
        let [mut alone, _] = LogFile::pair([Some(file.as_fd()), None]);
        alone.end.is_torn = true;
        assert!(alone.write(b"three\n").is_empty() && alone.write(b"four\n").is_empty());
        let (mut text, mut reader) = (String::new(), file);
        std::io::Seek::rewind(&mut reader).expect("a file");
        reader.read_to_string(&mut text).expect("text");
        assert_eq!(text, "\none\ntwo\n\nthree\nfour\n");
    }
}
