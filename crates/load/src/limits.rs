//! Limits of the system, and the wording of its errors.

use rustix::io;
use rustix::process::{getrlimit, setrlimit, Resource};

/// Files that a run may need besides its connections.
const OTHER_FILES: u64 = 64;

/// The system's error message without its number.
pub(crate) fn describe(error: io::Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

/// Raises the soft limit for open files as far as the connections need it.
pub(crate) fn allow_open_files(connections: usize) -> Result<(), String> {
    let needed = connections as u64 + OTHER_FILES;
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|hard| hard < needed) {
        return Err(format!(
            "{connections} connections need more open files than the hard limit (ulimit -Hn) allows"
        ));
    }
    limit.current = Some(needed);
    setrlimit(Resource::Nofile, limit).map_err(|error| format!("cannot raise the limit of open files: {error}"))
}
