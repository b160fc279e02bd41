//! The file with which pumactl and deploy scripts find the server.

use crate::settings::StateFileSettings;
use crate::whole_file::{self, Identity};
use crate::wording::{reason, shown};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The state file: process, control server and folder of the server, with the keys and in the format of Puma's. It is
/// written whole or not at all, and a server that starts later replaces it. Every method blocks while a disk hangs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateFile {
    settings: StateFileSettings,
}

/// The state files that this process has written. A process id is not enough to know them: in each container it may be 1.
static WRITTEN: Mutex<Vec<(PathBuf, Identity)>> = Mutex::new(Vec::new());

/// The reason why the file cannot be written.
#[derive(Debug)]
pub struct StateFileError(String);

impl StateFile {
    /// Does nothing yet.
    pub fn new(settings: StateFileSettings) -> StateFile {
        StateFile { settings }
    }

    /// The absolute path.
    pub fn path(&self) -> &Path {
        self.settings.path.path()
    }

    /// Writes the file for this process. `control`: the address and the token of the control server.
    ///
    /// # Errors
    /// If the system refuses it. The previous file then still exists, and no other one.
    pub fn write(&self, control: Option<(&str, Option<&str>)>) -> Result<(), StateFileError> {
        let pid = std::process::id();
        let text = text(pid, control, self.settings.running_from.os());
        let identity = whole_file::write(self.path(), &text, self.settings.mode).map_err(|error| {
            let path = shown(self.path().as_os_str().as_bytes());
            StateFileError(format!("state file {path}: {}", reason(&error)))
        })?;
        let mut written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        written.retain(|(path, _)| path != self.path());
        written.push((self.path().into(), identity));
        Ok(())
    }

    /// Removes the file, if it names this process and no server has replaced it.
    pub fn remove(&self) {
        let text = fs::read(self.path()).unwrap_or_default();
        if pid_in(&text) == Some(std::process::id()) && !self.is_replaced() {
            let _ = fs::remove_file(self.path());
        }
    }

    /// Returns true if the file is another one than this process has written.
    fn is_replaced(&self) -> bool {
        let Ok(there) = fs::symlink_metadata(self.path()) else {
            return true;
        };
        let written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = written.iter().find(|(path, _)| path == self.path());
        ours.is_some_and(|(_, identity)| *identity != whole_file::identity(&there))
    }
}

impl fmt::Display for StateFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for StateFileError {}

fn text(pid: u32, control: Option<(&str, Option<&str>)>, running_from: &OsStr) -> Vec<u8> {
    let mut text = format!("---\npid: {pid}\n");
    let (url, token) = control.unzip();
    for (key, value) in [("control_url", url), ("control_auth_token", token.flatten())] {
        if let Some(value) = value {
            let value = if is_plain(value) { value.into() } else { quoted(value) };
            text.push_str(&format!("{key}: {value}\n"));
        }
    }
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(b"running_from: \"");
    for byte in running_from.as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            bytes.push(b'\\');
        }
        bytes.push(*byte);
    }
    bytes.extend_from_slice(b"\"\n");
    bytes
}

/// Returns true for a text that YAML accepts without quotes.
fn is_plain(value: &str) -> bool {
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_:/.@?=-".contains(&byte);
    value.starts_with(|first: char| first.is_ascii_alphabetic()) && value.bytes().all(is_harmless)
}

fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

fn pid_in(text: &[u8]) -> Option<u32> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(b"pid: "))?;
    std::str::from_utf8(value).ok()?.trim().trim_matches('"').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::PermissionsExt;

    fn file(path: &Path) -> StateFile {
        StateFile::new(StateFileSettings {
            path: path.as_os_str().to_owned().into(),
            mode: 0o640,
            running_from: OsString::from("/srv/my app").into(),
        })
    }

    #[test]
    fn it_has_the_four_keys_of_puma_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        file(&path)
            .write(Some(("tcp://127.0.0.1:9293", Some("secret"))))
            .expect("a file");
        let expected = format!(
            "---\npid: {}\ncontrol_url: tcp://127.0.0.1:9293\ncontrol_auth_token: secret\nrunning_from: \"/srv/my app\"\n",
            std::process::id()
        );
        assert_eq!(fs::read_to_string(&path).expect("a file"), expected);
        let permissions = fs::metadata(&path).expect("a file").permissions();
        assert_eq!(permissions.mode() & 0o777, 0o640);
    }

    #[test]
    fn texts_that_yaml_would_read_as_something_else_are_quoted() {
        let control = Some(("unix://@a b", Some("12e3: #\"\\")));
        let folder = OsString::from_vec(b"/srv/\"caf\xE9\\".to_vec());
        let expected = b"---\npid: 7\ncontrol_url: \"unix://@a b\"\ncontrol_auth_token: \"12e3: #\\\"\\\\\"\nrunning_from: \"/srv/\\\"caf\xE9\\\\\"\n";
        assert_eq!(text(7, control, &folder), expected);
    }

    #[test]
    fn without_a_control_server_or_a_token_there_is_no_key() {
        let text = |control| String::from_utf8(text(7, control, OsStr::new("/"))).expect("text");
        assert_eq!(text(None), "---\npid: 7\nrunning_from: \"/\"\n");
        let without_token = "---\npid: 7\ncontrol_url: tcp://a:1\nrunning_from: \"/\"\n";
        assert_eq!(text(Some(("tcp://a:1", None))), without_token);
    }

    #[test]
    fn it_is_removed_unless_another_process_has_replaced_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        file(&path).write(None).expect("a file");
        file(&path).remove();
        assert!(!path.exists());
        fs::write(&path, "---\npid: 1\n").expect("a file");
        file(&path).remove();
        assert!(path.exists());
        file(&path).write(None).expect("a file");
        let same_id = folder.path().join("of another container");
        fs::copy(&path, &same_id)
            .and_then(|_| fs::rename(&same_id, &path))
            .expect("a file");
        file(&path).remove();
        assert!(path.exists());
    }

    #[test]
    fn an_error_names_the_file_and_the_reason() {
        let error = file(Path::new("/nowhere/state")).write(None).expect_err("no folder");
        assert_eq!(
            error.to_string(),
            "state file /nowhere/state: No such file or directory"
        );
    }
}
