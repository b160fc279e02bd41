//! Shared by the tests: reads a path in one line.

use fairlead_wire::{relative_path, PathFault, PathKind, PathRules};

/// Rules that refuse hidden names, and rules that allow them.
pub(crate) const USUAL: PathRules = PathRules { hidden: false };
pub(crate) const HIDDEN: PathRules = PathRules { hidden: true };

/// The resulting path, with a slash at the end if it is a folder.
pub(crate) fn read_with(path: impl AsRef<[u8]>, rules: PathRules) -> Result<String, PathFault> {
    let mut out = Vec::new();
    let kind = relative_path(path.as_ref(), rules, &mut out)?;
    let mut text = String::from_utf8(out).expect("only UTF-8 is accepted");
    if kind == PathKind::Folder {
        text.push('/');
    }
    Ok(text)
}

/// Does the same by the usual rules.
pub(crate) fn read(path: impl AsRef<[u8]>) -> Result<String, PathFault> {
    read_with(path, USUAL)
}

/// A path with each byte except slashes percent-encoded.
pub(crate) fn encoded(path: &[u8]) -> String {
    let encode = |byte: &u8| match byte {
        b'/' => "/".to_owned(),
        byte => format!("%{byte:02x}"),
    };
    path.iter().map(encode).collect()
}
