//! The logs: lines are queued in memory and written by a native thread, so that neither a slow disk nor a full pipe
//! delays a request. The thread starts with the first line. Lines that cannot be written, or not in time, are lost and
//! counted; when lines are written again, one says how many were lost.

use super::excess::{About, Bounded, Excess};
use crate::clock::{Millis, FAREWELL};
use crate::config::{Format, Logs};
use crate::sync::{Condvar, Mutex};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use std::fmt::{Arguments, Write as _};
use std::net::SocketAddr;
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
    access: LogFile,
    errors: LogFile,
    prefix: String,
}

/// Where the lines of one kind go.
struct LogFile {
    fd: Option<BorrowedFd<'static>>,
    /// Whether the file ends in the middle of a line, because the rest could not be written.
    is_torn: bool,
}

#[derive(Default)]
struct WriterState {
    pending: Mutex<Pending>,
    changed: Condvar,
    written: Condvar,
    lost_lines: AtomicU64,
    lost_bytes: AtomicU64,
}

/// What could not be written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

#[derive(Default)]
struct Pending {
    access: Vec<u8>,
    errors: Vec<u8>,
    excess: Excess,
    /// Whether the writer sleeps until the next line.
    asleep: bool,
    closed: bool,
    /// Whether somebody waits until everything is written, also about what was left out.
    flushes: bool,
    /// Whether the writer has taken lines and not yet written them.
    writing: bool,
}

impl LogWriter {
    pub(crate) fn new(logs: Logs) -> LogWriter {
        let (access, format) = logs.access.unzip();
        LogWriter {
            shared: Arc::default(),
            files: Mutex::new(Some(LogFiles {
                access: LogFile::new(access),
                errors: LogFile::new(logs.errors),
                prefix: logs.prefix.clone(),
            })),
            access: format,
            prefix: logs.prefix,
        }
    }

    /// The format of access lines, if there is an access log.
    pub(crate) fn access_format(&self) -> Option<&Format> {
        self.access.as_ref()
    }

    pub(crate) fn lost(&self) -> Lost {
        self.shared.lost()
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

    /// Adds an error line about what a peer has done, unless there are too many of its kind or about its address.
    pub(crate) fn about_peer(&self, about: About, peer: Option<SocketAddr>, message: Arguments<'_>) {
        self.about_peer_bounded(about, peer, format_args!("{}", Bounded(message)));
    }

    fn about_peer_bounded(&self, about: About, peer: Option<SocketAddr>, message: Arguments<'_>) {
        let mut pending = self.shared.pending.lock();
        let was_due = pending.excess.due();
        let is_admitted = pending
            .excess
            .admit(about, peer.map(|peer| peer.ip()), message, Millis::now());
        if pending.excess.due() != was_due {
            // The writer sleeps until then.
            self.shared.changed.notify_one();
        }
        drop(pending);
        if is_admitted {
            self.error(message);
        }
    }

    /// Waits until every line is written, but for a limited time; later lines are lost. True if no line is being written,
    /// so that the descriptors may be closed.
    pub(crate) fn close(&self) -> bool {
        let is_closed = self.shared.close();
        // The thread, if it has not been started yet, never is.
        self.files.lock().take();
        is_closed
    }

    fn add(&self, which: impl FnOnce(&mut Pending) -> &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let mut pending = self.shared.pending.lock();
        let is_closed = pending.closed;
        let buffer = which(&mut pending);
        let length = buffer.len();
        write(buffer);
        if length >= MOST_PENDING || is_closed {
            self.shared.lose(&buffer[length..]);
            buffer.truncate(length);
            return;
        }
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
        self.shared.close();
    }
}

impl WriterState {
    fn lost(&self) -> Lost {
        Lost {
            lines: self.lost_lines.load(Relaxed),
            bytes: self.lost_bytes.load(Relaxed),
        }
    }

    /// Counts lines that were not written, or the rest of them.
    fn lose(&self, bytes: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', bytes).count();
        self.lost_lines.fetch_add(lines as u64, Relaxed);
        self.lost_bytes.fetch_add(bytes.len() as u64, Relaxed);
    }

    /// False if lines are still being written after a limited time.
    fn close(&self) -> bool {
        let mut pending = self.pending.lock();
        pending.closed = true;
        pending.flushes = true;
        self.changed.notify_one();
        let unwritten =
            |pending: &mut Pending| pending.writing || !pending.is_empty() || pending.excess.due().is_some();
        let still_unwritten = self.written.wait_while_for(&mut pending, unwritten, FAREWELL);
        !still_unwritten
    }
}

impl Pending {
    /// Adds the lines about what was left out, if it is time or there will be none later.
    fn summarize(&mut self, prefix: &str) {
        let is_last = std::mem::take(&mut self.flushes) || self.closed;
        let until = if is_last { Millis::NEVER } else { Millis::now() };
        for line in self.excess.take(until) {
            self.errors.extend_from_slice(format!("{prefix}{line}\n").as_bytes());
        }
    }

    fn is_empty(&self) -> bool {
        self.access.is_empty() && self.errors.is_empty()
    }
}

fn write_lines(shared: &WriterState, mut files: LogFiles) {
    let mut reported = Lost::default();
    loop {
        let mut pending = shared.pending.lock();
        pending.summarize(&files.prefix);
        while pending.is_empty() {
            if pending.closed {
                return;
            }
            pending.asleep = true;
            match pending.excess.due() {
                None => shared.changed.wait(&mut pending),
                Some(due) => _ = shared.changed.wait_for(&mut pending, due - Millis::now()),
            }
            pending.summarize(&files.prefix);
        }
        let access = std::mem::take(&mut pending.access);
        let errors = std::mem::take(&mut pending.errors);
        pending.writing = true;
        drop(pending);
        let before = shared.lost();
        for (file, lines) in [(&mut files.access, &access), (&mut files.errors, &errors)] {
            shared.lose(file.write(lines));
        }
        let lost = shared.lost();
        if lost == before && lost != reported {
            files.report(reported, lost);
            reported = lost;
        }
        let mut pending = shared.pending.lock();
        pending.writing = false;
        shared.written.notify_all();
        if !pending.closed {
            shared.changed.wait_for(&mut pending, BATCH_TIME);
        }
    }
}

impl LogFiles {
    /// Says, among the errors, what was lost since the last report.
    fn report(&mut self, reported: Lost, lost: Lost) {
        let (lines, bytes) = (lost.lines - reported.lines, lost.bytes - reported.bytes);
        let prefix = &self.prefix;
        let line =
            format!("{prefix}{lines} lines of the logs ({bytes} bytes) could not be written in time and are lost\n");
        let _ = self.errors.write(line.as_bytes());
    }
}

impl LogFile {
    fn new(fd: Option<BorrowedFd<'static>>) -> LogFile {
        LogFile { fd, is_torn: false }
    }

    /// Writes lines; returns those that could not be written.
    fn write<'a>(&mut self, lines: &'a [u8]) -> &'a [u8] {
        let Some(fd) = self.fd.filter(|_| !lines.is_empty()) else {
            return &[];
        };
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

/// Returns what could not be written. Waits for a pipe that takes nothing now, even if another process has made it
/// non-blocking.
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
    use crate::support::eventually;
    use rustix::pipe::{pipe_with, PipeFlags};
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::AsFd;

    /// A descriptor for as long as the process lives.
    fn kept(fd: impl AsFd + 'static) -> BorrowedFd<'static> {
        let kept: &'static _ = Box::leak(Box::new(fd));
        kept.as_fd()
    }

    fn writer(access: BorrowedFd<'static>, flags: PipeFlags) -> (LogWriter, BufReader<File>) {
        let (reader, errors) = pipe_with(flags).expect("a pipe");
        let logs = Logs {
            access: Some((access, Format::Json)),
            errors: Some(kept(errors)),
            prefix: "[7] ".into(),
        };
        (LogWriter::new(logs), BufReader::new(reader.into()))
    }

    fn line(reader: &mut impl BufRead) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).expect("text");
        line
    }

    #[test]
    fn lines_that_a_full_disk_does_not_take_are_counted_and_told_of_later() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let (log, mut errors) = writer(kept(full), PipeFlags::empty());
        log.access(|out| out.extend_from_slice(b"one\ntwo\n"));
        eventually("a loss", || log.lost() == Lost { lines: 2, bytes: 8 });
        log.error(format_args!("next"));
        assert_eq!(line(&mut errors), "[7] next\n");
        let expected = "[7] 2 lines of the logs (8 bytes) could not be written in time and are lost\n";
        assert_eq!(line(&mut errors), expected);
        log.error(format_args!("after"));
        assert_eq!(line(&mut errors), "[7] after\n");
    }

    #[test]
    fn lines_that_a_reader_does_not_take_in_time_are_counted_and_the_others_arrive_whole() {
        let (mut reader, access) = pipe_with(PipeFlags::NONBLOCK)
            .map(|(from, to)| (File::from(from), to))
            .expect("a pipe");
        rustix::io::ioctl_fionbio(&reader, false).expect("a pipe");
        let (log, mut errors) = writer(kept(access), PipeFlags::empty());
        let text = [b"x".repeat(99), b"\n".to_vec()].concat();
        let sent = 3 * MOST_PENDING / text.len();
        (0..sent).for_each(|_| log.access(|out| out.extend_from_slice(&text)));
        let lost = log.lost();
        assert!(lost.lines > 0);
        assert_eq!(lost.bytes, lost.lines * text.len() as u64);
        let mut got = vec![0; (sent - lost.lines as usize) * text.len()];
        reader.read_exact(&mut got).expect("the other lines");
        assert!(got.chunks(text.len()).all(|line| line == text));
        assert!(line(&mut errors).contains(&format!("] {} lines of the logs ({} bytes)", lost.lines, lost.bytes)));
    }

    #[test]
    fn lines_about_peers_that_are_left_out_are_told_of_even_if_nothing_follows() {
        let (access, _) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let (log, mut errors) = writer(kept(access), PipeFlags::empty());
        (0..1_000).for_each(|number| log.about_peer(About::RefusedRequest, None, format_args!("{number}")));
        let lines: Vec<String> = (0..101).map(|_| line(&mut errors)).collect();
        assert_eq!(lines[99..], ["[7] 99\n", "[7] 100, and 899 more like this\n"]);
        // Another burst, and before its second is over the end of the log.
        (0..1_000).for_each(|number| log.about_peer(About::Client, None, format_args!("{number}")));
        drop(log);
        let last = errors.lines().nth(100).expect("a line").expect("text");
        assert_eq!(last, "[7] 100, and 899 more like this");
    }

    #[test]
    fn a_torn_line_ends_before_the_next_one_begins() {
        let file = tempfile::tempfile().expect("a file");
        let mut log = LogFile {
            fd: Some(kept(file.try_clone().expect("a descriptor"))),
            is_torn: true,
        };
        assert!(log.write(b"one\n").is_empty() && log.write(b"two\n").is_empty());
        let mut text = String::new();
        std::io::Seek::rewind(&mut &file).expect("a file");
        (&file).read_to_string(&mut text).expect("text");
        assert_eq!(text, "\none\ntwo\n");
    }
}
