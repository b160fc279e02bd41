//! The descriptors 1 and 2 belong to the whole process, so this file has only one test.

use fairlead_supervisor::log::Log;
use fairlead_supervisor::settings::{LogSettings, SystemText};
use fairlead_supervisor::standard_streams::{Former, StandardStreams};
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Streams redirected to files, until the value is dropped.
struct Redirected {
    folder: TempDir,
    settings: LogSettings,
    streams: StandardStreams,
    log: Log,
    former: Former,
}

impl Redirected {
    fn new() -> Redirected {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| Some(SystemText::from(folder.path().join("log").join(name).into_os_string()));
        let settings = LogSettings {
            json: false,
            quiet: false,
            debug: false,
            prefix: false,
            by_ruby: false,
            stdout: path("out"),
            stderr: path("errors"),
            access: path("access"),
        };
        fs::create_dir(folder.path().join("log")).expect("a folder");
        let files = ["out", "errors"].map(|name| append(&folder.path().join("log").join(name)));
        let [output, errors] = files.map(Some);
        let streams = StandardStreams::default();
        let former = streams.adopt(output, errors).expect("descriptors");
        Redirected {
            log: Log::new(&settings),
            folder,
            settings,
            streams,
            former,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Reopens the files, and logs the result.
    fn reopen(&self) {
        let reopening = self.streams.reopening(&self.settings).expect("files");
        reopening.run().report(&self.log);
        self.flush();
    }

    /// A line on each stream.
    fn write(&self, text: &str) {
        self.log.info("test", text);
        self.log.warn("test", text);
        self.flush();
    }

    fn flush(&self) {
        assert!(self.log.flush(Duration::from_secs(20)));
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("a file")
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        let _ = self.streams.restore(&self.former);
    }
}

fn append(path: &Path) -> OwnedFd {
    let file = File::options().append(true).create(true).open(path);
    file.expect("a file").into()
}

#[test]
fn the_streams_change_their_files() {
    after_rotation_lines_go_to_new_files();
    without_the_folder_the_old_files_stay();
    a_disk_that_hangs_undoes_no_later_change();
    the_files_of_before_come_back();
    without_files_there_is_nothing_to_open();
}

fn after_rotation_lines_go_to_new_files() {
    let redirected = Redirected::new();
    redirected.write("before");
    fs::rename(redirected.path("log/out"), redirected.path("log/out.1")).expect("a file");
    redirected.reopen();
    assert_eq!(redirected.content("log/out.1"), "before\n");
    let line = "reopened the access log and standard output and standard error\n";
    assert_eq!(redirected.content("log/out"), line);
    assert_eq!(redirected.content("log/access"), "");
    redirected.write("after");
    assert_eq!(redirected.content("log/errors"), "before\nafter\n");
    let other = File::open(redirected.path("log/out")).expect("a file");
    flock(&other, FlockOperation::NonBlockingLockExclusive).expect_err("the lock is shared");
}

fn without_the_folder_the_old_files_stay() {
    let redirected = Redirected::new();
    fs::rename(redirected.path("log"), redirected.path("gone")).expect("a folder");
    redirected.reopen();
    let path = |name| redirected.path("log").join(name).display().to_string();
    let expected = ["access", "out", "errors"].map(|name| {
        format!(
            "cannot reopen {}, so the old file is used: No such file or directory\n",
            path(name)
        )
    });
    assert_eq!(redirected.content("gone/errors"), expected.concat());
    assert_eq!(redirected.content("gone/out"), "");
}

fn a_disk_that_hangs_undoes_no_later_change() {
    let redirected = Redirected::new();
    let late = redirected.streams.reopening(&redirected.settings).expect("files");
    late.late().report(&redirected.log);
    let first = ": the disk does not answer\n";
    redirected.flush();
    assert_eq!(redirected.content("log/errors").matches(first).count(), 3);

    let output = append(&redirected.path("other"));
    redirected.streams.adopt(Some(output), None).expect("descriptors");
    let reopened = late.run();
    assert_eq!(reopened, Default::default());
    redirected.write("after");
    assert_eq!(redirected.content("other"), "after\n");
    assert!(redirected.content("log/errors").ends_with("after\n"));
}

fn the_files_of_before_come_back() {
    let redirected = Redirected::new();
    let others = ["out.2", "errors.2"].map(|name| Some(append(&redirected.path(name))));
    let [output, errors] = others;
    let former = redirected.streams.adopt(output, errors).expect("descriptors");
    redirected.write("new");
    redirected.streams.restore(&former).expect("descriptors");
    redirected.write("old");
    let contents = ["out.2", "errors.2", "log/out", "log/errors"].map(|name| redirected.content(name));
    assert_eq!(contents, ["new\n", "new\n", "old\n", "old\n"]);
}

fn without_files_there_is_nothing_to_open() {
    let redirected = Redirected::new();
    let settings = LogSettings {
        stdout: None,
        stderr: None,
        access: None,
        ..redirected.settings.clone()
    };
    assert!(redirected.streams.reopening(&settings).is_none());
}
