//! Files that the app names instead of sending them: in a field of the head, or with a body that responds to `to_path`.

use super::Exchange;
use crate::files::{is_regular, READ, UNREACHABLE};
use rustix::fs::{fstat, Mode};
use std::fs::File;
use std::path::Path;

const NO_SUCH_FILE: &str = "the app named a file that is not beneath a folder of `sendfile_root`, or cannot be read";

impl Exchange<'_> {
    /// Whether a field of the head names a file to be sent instead of the body.
    pub fn names_a_file(&self) -> bool {
        self.named.is_some()
    }

    /// Ends the head and sends the file that it names. 404 if it is not in a folder of `sendfile_root`, 503 if it could
    /// not be opened or read this time.
    pub fn send_named_file(&mut self) {
        let Some(named) = self.named.take() else { return };
        self.drop_announced_length();
        let files = &self.services.files;
        let sent = files.named(&named).and_then(|found| match found {
            Some((file, stat, name)) => self.send(file, &stat, Some(&String::from_utf8_lossy(&name))),
            None => Ok(false),
        });
        let (status, fault) = match sent {
            Ok(true) => return,
            Ok(false) => (404, NO_SUCH_FILE),
            Err(_) => (503, UNREACHABLE),
        };
        self.blame(fault);
        if self.take_back() {
            self.respond_plainly(status);
        } else {
            self.abort();
        }
    }

    /// Ends the head and sends the file at `path`, which the app itself has opened or made. False, with nothing
    /// changed, if there is no such file, or the app has announced another length, as it does for a part of a file.
    pub fn send_path(&mut self, path: &Path) -> bool {
        // The path may name a FIFO or a device, which only the app can read correctly. Opening does not block, in case
        // one takes the place of the file in between.
        if !std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
            return false;
        }
        let Ok(file) = rustix::fs::open(path, READ, Mode::empty()) else {
            return false;
        };
        let Ok(stat) = fstat(&file) else { return false };
        if !is_regular(&stat) {
            return false;
        }
        let file = File::from(file);
        let length = u64::try_from(stat.st_size).unwrap_or(0);
        if self.announced_length().is_some_and(|announced| announced != length) {
            return false;
        }
        let announced = self.drop_announced_length();
        // If the server has no descriptor for it, the app reads the file itself.
        if matches!(self.send(file, &stat, None), Ok(true)) {
            return true;
        }
        self.announce_length(announced);
        false
    }
}
