//! The file that restarts the server when it is touched, as `rails restart` does: Puma's plugin `tmp_restart`.

use std::path::Path;
use std::time::{Duration, SystemTime};

/// Time between two checks of the file.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// Remembers the last touch of the file.
#[derive(Debug)]
pub struct RestartFile {
    touched_at: SystemTime,
}

/// Returns the time of the last touch; a time long ago if there is no file. Blocks while a disk hangs.
pub fn touched_at(path: &Path) -> SystemTime {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.unwrap_or(SystemTime::UNIX_EPOCH)
}

impl RestartFile {
    /// Begins with a first check, at the start of the server.
    pub fn new(touched_at: SystemTime) -> RestartFile {
        RestartFile { touched_at }
    }

    /// The time of the last touch.
    pub fn touched_at(&self) -> SystemTime {
        self.touched_at
    }

    /// Checks again; returns true if the file was touched meanwhile.
    pub fn is_touched(&mut self, touched_at: SystemTime) -> bool {
        let is_newer = touched_at > self.touched_at;
        if is_newer {
            self.touched_at = touched_at;
        }
        is_newer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn each_touch_asks_for_one_restart_and_the_file_need_not_exist() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("restart.txt");
        let mut file = RestartFile::new(touched_at(&path));
        assert!(!file.is_touched(touched_at(&path)));
        assert!(!path.exists());

        let touch = |time| {
            File::create(&path)
                .and_then(|file| file.set_modified(time))
                .expect("a file")
        };
        let now = SystemTime::now();
        for (time, expected) in [(now, true), (now, false), (now + INTERVAL, true), (now, false)] {
            touch(time);
            assert_eq!(file.is_touched(touched_at(&path)), expected);
        }
    }
}
