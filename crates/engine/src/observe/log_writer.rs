//! The logs of an engine, each with its own thread (`log_stream.rs`): access lines, and error lines. The error log also
//! reports the losses of both, and the number of lines about peers that were left out.

use super::excess::{About, Bounded, Excess};
use super::log_stream::{LogFile, LogStream, Losses, Lost, Notes, Nothing};
use crate::clock::{Millis, FAREWELL};
use crate::config::{Format, Logs};
use std::fmt::{Arguments, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The time without further losses before they are reported, and the longest time until a report.
const QUIET: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct LogWriter {
    access: Arc<LogStream<Nothing>>,
    errors: Arc<LogStream<ErrorNotes>>,
    losses: [Arc<Losses>; 2],
    format: Option<Format>,
    prefix: String,
}

/// Lines of the error log about both logs.
struct ErrorNotes {
    prefix: String,
    excess: Excess,
    reports: [Report; 2],
    /// The last error lines could be written. If not, a report could not be read.
    works: bool,
}

/// Losses of a log, and their last report.
struct Report {
    /// "access log"
    name: &'static str,
    losses: Arc<Losses>,
    told: Lost,
    /// The time of the last report, or the time when losses began after it.
    since: Millis,
    seen: Lost,
    seen_at: Millis,
    /// The time of the next check.
    due: Millis,
}

impl LogWriter {
    pub(crate) fn new(logs: Logs) -> LogWriter {
        let (access, format) = logs.access.unzip();
        let losses: [Arc<Losses>; 2] = Default::default();
        let [access_file, errors_file] = LogFile::pair([access, logs.errors]);
        let [of_access, of_errors] = losses.clone();
        let notes = ErrorNotes::new(logs.prefix.clone(), &losses);
        let errors = LogStream::new(errors_file, notes, of_errors, || {});
        let told = Arc::clone(&errors);
        let access = LogStream::new(access_file, Nothing, of_access, move || {
            told.note(|notes| notes.see(Millis::now()));
        });
        LogWriter {
            access,
            errors,
            losses,
            format,
            prefix: logs.prefix,
        }
    }

    /// The format of access lines, if there is an access log.
    pub(crate) fn access_format(&self) -> Option<&Format> {
        self.format.as_ref()
    }

    /// Losses of both logs.
    pub(crate) fn lost(&self) -> Lost {
        let [access, errors] = self.losses.each_ref().map(|losses| losses.so_far());
        Lost {
            lines: access.lines + errors.lines,
            bytes: access.bytes + errors.bytes,
        }
    }

    /// Adds an access line: the output of `write`.
    pub(crate) fn access(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.access.add(write);
    }

    /// Adds an error line.
    pub(crate) fn error(&self, message: Arguments<'_>) {
        let mut line = String::with_capacity(120);
        let _ = writeln!(line, "{}{message}", self.prefix);
        self.errors.add(|lines| lines.extend_from_slice(line.as_bytes()));
    }

    /// Adds an error line about an action of a peer, unless there are too many of its kind or about its address.
    pub(crate) fn about_peer(&self, about: About, peer: Option<SocketAddr>, message: Arguments<'_>) {
        self.about_peer_bounded(about, peer, format_args!("{}", Bounded(message)));
    }

    fn about_peer_bounded(&self, about: About, peer: Option<SocketAddr>, message: Arguments<'_>) {
        let address = peer.map(|peer| peer.ip());
        let admit = |notes: &mut ErrorNotes| notes.excess.admit(about, address, message, Millis::now());
        if self.errors.note(admit) {
            self.error(message);
        }
    }

    /// Waits until every line is written, but for a limited time; later lines are lost. Returns true if no line is
    /// being written, so that the descriptors may be closed.
    pub(crate) fn close(&self) -> bool {
        let start = Instant::now();
        self.access.close();
        // The error log reports lines that are lost by then.
        self.access.wait(start + FAREWELL / 2);
        self.errors.close();
        let is_closed = self.errors.wait(start + FAREWELL);
        self.access.wait(start + FAREWELL) && is_closed
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        // If the logs were closed before, that has waited already.
        if !(self.access.is_closed() && self.errors.is_closed()) {
            self.close();
        }
    }
}

impl ErrorNotes {
    fn new(prefix: String, [access, errors]: &[Arc<Losses>; 2]) -> ErrorNotes {
        ErrorNotes {
            prefix,
            excess: Excess::default(),
            reports: [Report::new("access log", access), Report::new("error log", errors)],
            works: true,
        }
    }

    /// Checks for losses.
    fn see(&mut self, now: Millis) {
        self.reports.iter_mut().for_each(|report| report.see(now));
    }
}

impl Notes for ErrorNotes {
    fn due(&self) -> Option<Millis> {
        let reports = self.reports.iter().filter(|_| self.works);
        reports.filter_map(Report::due).chain(self.excess.due()).min()
    }

    fn take(&mut self, now: Millis, is_last: bool, lines: &mut Vec<u8>) {
        self.see(now);
        let prefix = &self.prefix;
        let mut add = |line: String| lines.extend_from_slice(format!("{prefix}{line}\n").as_bytes());
        self.excess
            .take(if is_last { Millis::NEVER } else { now })
            .into_iter()
            .for_each(&mut add);
        if self.works {
            let reports = self.reports.iter_mut();
            reports.filter_map(|report| report.take(now, is_last)).for_each(add);
        }
    }

    fn note_write(&mut self, is_whole: bool) {
        self.works = is_whole;
    }
}

impl Report {
    fn new(name: &'static str, losses: &Arc<Losses>) -> Report {
        Report {
            name,
            losses: Arc::clone(losses),
            told: Lost::default(),
            since: Millis::LONG_AGO,
            seen: Lost::default(),
            seen_at: Millis::LONG_AGO,
            due: Millis::NEVER,
        }
    }

    fn see(&mut self, now: Millis) {
        let lost = self.losses.so_far();
        if lost == self.seen {
            return;
        }
        if self.seen == self.told {
            (self.since, self.due) = (now, now + QUIET);
        }
        (self.seen, self.seen_at) = (lost, now);
    }

    /// The time of the next report, if there are losses. It does not change while losses grow, so that the thread need
    /// not wake each time.
    fn due(&self) -> Option<Millis> {
        (self.seen != self.told).then_some(self.due)
    }

    fn take(&mut self, now: Millis, is_last: bool) -> Option<String> {
        if self.seen == self.told {
            return None;
        }
        let is_over = now - self.seen_at >= QUIET || now - self.since >= PATIENCE;
        if !is_over && !is_last {
            self.due = self.due.max(now + QUIET);
            return None;
        }
        let (lines, bytes) = (self.seen.lines - self.told.lines, self.seen.bytes - self.told.bytes);
        self.told = self.seen;
        Some(format!(
            "{lines} lines of the {} ({bytes} bytes) could not be written in time and are lost",
            self.name
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::log_stream::MOST_PENDING;
    use super::*;
    use crate::support::eventually;
    use rustix::pipe::{pipe_with, PipeFlags};
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read};
    use std::os::fd::{AsFd, BorrowedFd};

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
        let expected = "[7] 2 lines of the access log (8 bytes) could not be written in time and are lost\n";
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
        let expected = format!("] {} lines of the access log ({} bytes)", lost.lines, lost.bytes);
        assert!(line(&mut errors).contains(&expected));
    }

    #[test]
    fn lines_about_peers_that_are_left_out_are_told_of_even_if_nothing_follows() {
        let (access, _) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let (log, mut errors) = writer(kept(access), PipeFlags::empty());
        (0..1_000).for_each(|number| log.about_peer(About::RefusedRequest, None, format_args!("{number}")));
        let lines: Vec<String> = (0..101).map(|_| line(&mut errors)).collect();
        assert_eq!(lines[99..], ["[7] 99\n", "[7] 100, and 899 more like this\n"]);
        // Another burst, and the log ends before its second is over.
        (0..1_000).for_each(|number| log.about_peer(About::Client, None, format_args!("{number}")));
        drop(log);
        let last = errors.lines().nth(100).expect("a line").expect("text");
        assert_eq!(last, "[7] 100, and 899 more like this");
    }
    /// A pipe that is full until it is read.
    fn full_pipe() -> (File, BorrowedFd<'static>) {
        let (reader, writer) = pipe_with(PipeFlags::empty()).expect("a pipe");
        rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
        while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
        rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
        (reader.into(), kept(writer))
    }

    #[test]
    fn a_log_that_nobody_reads_holds_up_no_other_one_and_that_says_what_is_lost() {
        let (_reader, access) = full_pipe();
        let (log, mut errors) = writer(access, PipeFlags::empty());
        log.access(|out| out.extend_from_slice(b"blocked\n"));
        for number in 0..3 {
            log.error(format_args!("{number}"));
            assert_eq!(line(&mut errors), format!("[7] {number}\n"));
        }
        let text = [b"x".repeat(99), b"\n".to_vec()].concat();
        (0..2 * MOST_PENDING / text.len()).for_each(|_| log.access(|out| out.extend_from_slice(&text)));
        let lost = log.lost();
        let expected = format!(
            "[7] {} lines of the access log ({} bytes) could",
            lost.lines, lost.bytes
        );
        assert!(line(&mut errors).starts_with(&expected));
        log.error(format_args!("last"));
        assert!(!log.close(), "its thread still writes");
        assert_eq!(line(&mut errors), "[7] last\n");
    }

    #[test]
    fn error_lines_that_nobody_reads_hold_up_no_access_line_and_are_told_of_later() {
        let (reader, access) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let (mut blocked, errors) = full_pipe();
        let log = LogWriter::new(Logs {
            access: Some((kept(access), Format::Json)),
            errors: Some(errors),
            prefix: String::new(),
        });
        let text = "x".repeat(99);
        (0..2 * MOST_PENDING / text.len()).for_each(|_| log.error(format_args!("{text}")));
        log.access(|out| out.extend_from_slice(b"one\n"));
        assert_eq!(line(&mut BufReader::new(File::from(reader))), "one\n");
        let lost = log.lost();
        let expected = format!("{} lines of the error log ({} bytes) could", lost.lines, lost.bytes);
        let mut filling = vec![0; 64 * 1024];
        blocked.read_exact(&mut filling).expect("the filling bytes");
        let mut others = BufReader::new(blocked).lines().map(|line| line.expect("text"));
        let report = others.find(|line| *line != text).expect("a report");
        assert!(report.starts_with(&expected), "{report}");
    }

    #[test]
    fn two_logs_in_the_same_pipe_keep_their_lines_whole() {
        let (reader, pipe) = pipe_with(PipeFlags::empty()).expect("a pipe");
        let pipe = kept(pipe);
        let log = LogWriter::new(Logs {
            access: Some((pipe, Format::Json)),
            errors: Some(pipe.try_clone_to_owned().map(kept).expect("a descriptor")),
            prefix: String::new(),
        });
        let texts = ["a", "e"].map(|text| text.repeat(199));
        let reading = std::thread::spawn(|| {
            BufReader::new(File::from(reader))
                .lines()
                .take(8_000)
                .collect::<Vec<_>>()
        });
        for _ in 0..4_000 {
            log.access(|out| out.extend_from_slice(format!("{}\n", texts[0]).as_bytes()));
            log.error(format_args!("{}", texts[1]));
        }
        let lines = reading.join().expect("lines");
        let is_whole = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|line| texts.contains(line));
        assert!(lines.iter().all(is_whole));
    }

    #[test]
    fn losses_that_go_on_are_told_of_now_and_then() {
        let losses: [Arc<Losses>; 2] = Default::default();
        let mut report = Report::new("access log", &losses[0]);
        let mut told = Vec::new();
        for half_second in 0..50 {
            let now = Millis::START + QUIET / 2 * half_second;
            losses[0].add(b"x\n");
            report.see(now);
            assert!(report.due() <= Some(now + QUIET), "it is looked at again");
            told.extend(report.take(now, false).map(|_| half_second));
        }
        assert_eq!(told, [20, 41]);
        assert!(report.take(Millis::START, true).is_some(), "the rest at the end");
        assert_eq!((report.due(), report.take(Millis::NEVER, true)), (None, None));
    }
}
