use super::*;
use rustix::pipe::{pipe_with, PipeFlags};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;

const LIMIT: Duration = Duration::from_secs(20);

fn settings() -> LogSettings {
    LogSettings {
        json: false,
        quiet: false,
        debug: false,
        prefix: false,
        by_ruby: false,
        stdout: None,
        stderr: None,
        access: None,
    }
}

/// A log, and the readers of its streams.
fn log(settings: &LogSettings) -> (Log, [BufReader<File>; 2]) {
    let (output, to_output) = pipe_with(PipeFlags::empty()).expect("a pipe");
    let (errors, to_errors) = pipe_with(PipeFlags::empty()).expect("a pipe");
    let log = Log::to(settings, to_output, to_errors);
    (log, [output, errors].map(|reader| BufReader::new(reader.into())))
}

/// Everything that the log has written to the streams until it was dropped.
fn rest(log: Log, readers: [BufReader<File>; 2]) -> [String; 2] {
    drop(log);
    readers.map(|mut reader| {
        let mut text = String::new();
        reader.read_to_string(&mut text).expect("text");
        text
    })
}

fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("text");
    line
}

fn write_each(log: &Log) {
    log.debug("one", "a");
    log.info("two", "b\nc");
    log.warn("three", "d");
    log.error("four", "e");
}

#[test]
fn messages_go_to_the_stream_of_their_level() {
    let (log, readers) = log(&settings());
    write_each(&log);
    assert_eq!(rest(log, readers), ["b\nc\n", "d\ne\n"]);
}

#[test]
fn the_configuration_says_which_levels_are_wanted_and_whether_lines_have_a_prefix() {
    let settings = LogSettings {
        quiet: true,
        debug: true,
        prefix: true,
        ..settings()
    };
    let (log, readers) = log(&settings);
    write_each(&log);
    let pid = std::process::id();
    let expected = [format!("[{pid}] a\n"), format!("[{pid}] d\n[{pid}] e\n")];
    assert_eq!(rest(log, readers), expected);
}

#[test]
fn a_message_is_an_object_in_a_line_of_json() {
    let settings = LogSettings {
        json: true,
        prefix: true,
        ..settings()
    };
    let (log, readers) = log(&settings);
    log.info("stopped", "one\n\"two\" \u{e4}\u{1}/\u{7f}");
    let [output, errors] = rest(log, readers);
    let (time, others) = output.split_at("{\"time\":\"2024-02-29T12:34:56.789Z\"".len());
    assert!(time.starts_with("{\"time\":\"20") && time.ends_with("Z\""), "{time}");
    let pid = std::process::id();
    let expected = "\"message\":\"one\\n\\\"two\\\" \u{e4}\\u0001/\u{7f}\"}\n";
    assert_eq!(
        others,
        format!(",\"level\":\"info\",\"pid\":{pid},\"event\":\"stopped\",{expected}")
    );
    assert_eq!(errors, "");
}

#[test]
fn another_configuration_counts_from_the_next_line_on() {
    let (log, readers) = log(&settings());
    log.info("one", "a");
    log.adopt(&LogSettings {
        quiet: true,
        ..settings()
    });
    log.info("one", "b");
    log.warn("one", "c");
    assert_eq!(rest(log, readers), ["a\n", "c\n"]);
}

#[test]
fn a_log_of_ruby_gets_the_messages_and_standard_error_those_it_cannot_take() {
    let settings = LogSettings {
        by_ruby: true,
        ..settings()
    };
    let (log, readers) = log(&settings);
    log.info("early", "nobody is there");
    let (taken, lines) = channel();
    let own = log.clone();
    log.pass_to(Box::new(move |level, event, text| {
        own.info("inner", "from within");
        event != "lost" && taken.send(format!("{} {event} {text}", level.name())).is_ok()
    }));
    log.debug("unwanted", "x");
    log.info("first", "a");
    log.warn("lost", "b");
    log.error("second", "c");
    log.pass_to(Box::new(|_, _, _| true));
    assert_eq!(lines.iter().collect::<Vec<_>>(), ["info first a", "error second c"]);
    let inner = "from within\n";
    let expected = format!("nobody is there\n{inner}{inner}b\n{inner}");
    assert_eq!(rest(log, readers), [String::new(), expected]);
}

#[test]
fn a_stream_that_nobody_reads_holds_up_neither_the_server_nor_the_other_stream() {
    let (log, [mut output, mut errors]) = log(&settings());
    let text = "x".repeat(999);
    let sent = 3 * queue::MOST_BYTES / 1_000;
    (0..sent).for_each(|_| log.info("much", &text));
    log.warn("one", "all is lost");
    assert_eq!(line(&mut errors), "all is lost\n");
    assert!(!log.flush(Duration::from_millis(1)), "the stream is blocked");

    let mut kept = 0;
    let about_dropped = loop {
        match line(&mut output) {
            line if line.trim_end() == text => kept += 1,
            line => break line,
        }
    };
    assert!((256..sent).contains(&kept), "{kept}");
    assert_eq!(
        about_dropped,
        format!(
            "{} lines were dropped: the reader of the log is too slow\n",
            sent - kept
        )
    );
    assert!(log.flush(LIMIT));
    log.info("one", "again");
    assert_eq!(line(&mut output), "again\n");
}

#[test]
fn a_pipe_that_another_process_has_made_non_blocking_loses_nothing() {
    let (reader, pipe) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
    rustix::io::ioctl_fionbio(&reader, false).expect("a pipe");
    let log = Log::to(&settings(), pipe.try_clone().expect("a descriptor"), pipe);
    let text = "x".repeat(999);
    (0..200).for_each(|_| log.info("much", &text));
    let mut reader = BufReader::new(File::from(reader));
    (0..200).for_each(|_| assert_eq!(line(&mut reader).trim_end(), text));
    assert!(log.flush(LIMIT));
}

/// A full disk, which another stream replaces later.
struct Replaced(File, OwnedFd, Arc<AtomicBool>);

impl AsFd for Replaced {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self.2.load(SeqCst) {
            false => self.0.as_fd(),
            true => self.1.as_fd(),
        }
    }
}

#[test]
fn lines_that_a_full_disk_does_not_take_are_told_of_when_it_takes_some_again() {
    let (reader, pipe) = pipe_with(PipeFlags::empty()).expect("a pipe");
    let has_space = Arc::new(AtomicBool::new(false));
    let full = || File::options().write(true).open("/dev/full").expect("a device");
    let stream = || Replaced(full(), pipe.try_clone().expect("a descriptor"), Arc::clone(&has_space));
    let log = Log::to(&settings(), stream(), stream());
    log.warn("one", "a");
    log.warn("one", "b");
    assert!(log.flush(LIMIT));
    has_space.store(true, SeqCst);
    log.warn("one", "c");
    log.warn("one", "d");
    let mut reader = BufReader::new(File::from(reader));
    let lines = [(); 3].map(|()| line(&mut reader));
    assert_eq!(lines, ["2 lines were dropped: No space left on device\n", "c\n", "d\n"]);
}

#[test]
fn a_reader_that_has_gone_is_harmless() {
    let (log, readers) = log(&settings());
    drop(readers);
    write_each(&log);
    write_each(&log);
    assert!(log.flush(LIMIT));
}

/// A stream that panics on first use.
struct Panicking(OwnedFd, AtomicBool);

impl AsFd for Panicking {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let panics = self.1.swap(false, SeqCst);
        assert!(!panics, "as planned");
        self.0.as_fd()
    }
}

#[test]
fn after_a_panic_the_next_line_is_written() {
    let (reader, pipe) = pipe_with(PipeFlags::empty()).expect("a pipe");
    let [output, errors] = [(), ()].map(|()| Panicking(pipe.try_clone().expect("a descriptor"), true.into()));
    let log = Log::to(&settings(), output, errors);
    log.warn("one", "a");
    assert!(log.flush(LIMIT), "flush does not wait for the line");
    log.warn("one", "b");
    assert_eq!(line(&mut BufReader::new(File::from(reader))), "b\n");
}
