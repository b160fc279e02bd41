//! Paths as names of files: decides by the text of a request's path if it may name a file, before any file system is
//! accessed.
//!
//! ```text
//! path as sent ─► percent-decoded once ─► characters ─► names ─► relative path, or a fault
//! ```
//!
//! An accepted path means the same on every system that might read it. The names between its slashes are valid file
//! names on Linux, macOS and Windows; none of them leads upwards or is another spelling of a different name, except for
//! letter case and composed characters. Nothing is repaired: a path that needs a repair is refused, because otherwise
//! two spellings would reach one file, and rules about one of them would miss the other. The code that opens a file
//! must check where its name leads (links, devices, permissions).

mod character;
mod decode;
mod fault;
mod name;

pub use decode::decode;
pub use fault::PathFault;

use character::{Class, CLASSES};

/// The longest path, decoded: PATH_MAX of Linux, which is larger than on other systems.
pub const MAX_PATH_BYTES: usize = 4096;

/// Names that paths may contain in addition.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathRules {
    /// Names that begin with a dot or end with `~`. Otherwise only `.well-known` (RFC 8615) may begin with a dot, and
    /// only as the first name.
    pub hidden: bool,
}

/// The kind of file that a path names, by its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// No slash at the end: a file, or a folder without its slash.
    File,
    /// A slash at the end, or only a slash.
    Folder,
}

/// Decodes the path of a request target, without its query, to a path relative to a folder: `/a%20b/c` to `a b/c`, `/`
/// to an empty path. A slash at the end is removed. `out` is cleared first, and is empty if the path is refused. If the
/// path has several faults, the result is any one of them.
pub fn relative_path(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<PathKind, PathFault> {
    out.clear();
    let outcome = decode_and_check(path, rules, out);
    if outcome.is_err() {
        out.clear();
    }
    outcome
}

fn decode_and_check(path: &[u8], rules: PathRules, out: &mut Vec<u8>) -> Result<PathKind, PathFault> {
    let [b'/', relative @ ..] = path else {
        return Err(PathFault::NoLeadingSlash);
    };
    let (relative, kind) = match relative {
        [] => return Ok(PathKind::Folder),
        [names @ .., b'/'] => (names, PathKind::Folder),
        names => (names, PathKind::File),
    };
    if relative.is_empty() {
        return Err(PathFault::EmptyName);
    }
    decode(relative, out)?;
    check_path(out, rules).map(|()| kind)
}

/// Checks a decoded, relative path, as an application names a file: `a b/c`. An empty path is the folder itself.
/// Accepts every result of [`relative_path`].
pub fn check_path(path: &[u8], rules: PathRules) -> Result<(), PathFault> {
    if path.is_empty() {
        return Ok(());
    }
    if path.len() > MAX_PATH_BYTES {
        return Err(PathFault::PathTooLong);
    }
    let mut start = 0;
    let mut has_tilde = false;
    let mut is_ascii = true;
    for (at, &byte) in path.iter().enumerate() {
        match CLASSES[usize::from(byte)] {
            Class::Plain => {}
            Class::Slash => {
                name::check(&path[start..at], start == 0, has_tilde, rules)?;
                start = at + 1;
            }
            Class::Tilde => has_tilde = true,
            Class::NonAscii => is_ascii = false,
            Class::Refused(fault) => return Err(fault),
        }
    }
    name::check(&path[start..], start == 0, has_tilde, rules)?;
    if is_ascii {
        Ok(())
    } else {
        character::check_text(path)
    }
}
