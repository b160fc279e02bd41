//! Files that the app names in a field of its response instead of sending them: `x-sendfile` with a path on this
//! machine, `x-accel-redirect` with an internal path. Only files in configured folders are sent, because a client may
//! have influenced the name.

use super::folder::{unless_missing, Folder, Reach};
use super::Files;
use fairlead_wire::path::decode;
use rustix::fs::Stat;
use rustix::io;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Longest path that is accepted.
const MOST_BYTES: usize = 4096;

/// A folder from which the app may have files sent.
pub(crate) struct Root {
    folder: Folder,
    /// Its path as configured, and without links.
    paths: [Vec<u8>; 2],
    /// The prefix of internal paths; begins and ends with a slash.
    prefix: Option<Vec<u8>>,
}

/// The field with which the app has named a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// `x-sendfile`: the absolute path, unchanged.
    Path(Vec<u8>),
    /// `x-accel-redirect`: an internal path, percent-encoded; a query is ignored.
    Internal(Vec<u8>),
}

impl Named {
    /// The file that a response field names, if it is one of the two fields.
    pub(crate) fn from_field(name: &[u8], value: &[u8]) -> Option<Named> {
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"x-sendfile") => Some(Named::Path(value.to_vec())),
            16 if name.eq_ignore_ascii_case(b"x-accel-redirect") => Some(Named::Internal(value.to_vec())),
            _ => None,
        }
    }
}

impl Root {
    pub(super) fn open(prefix: Option<&str>, path: &Path, symlinks: crate::Symlinks) -> std::io::Result<Root> {
        let real = path.canonicalize()?;
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let prefix = prefix.map(|prefix| format!("/{}/", prefix.trim_matches('/')).replace("//", "/"));
        Ok(Root {
            folder: Folder::open(&real, symlinks)?,
            paths: [bytes(path), bytes(&real)],
            prefix: prefix.map(String::into_bytes),
        })
    }

    /// The path of `named`, relative to this root.
    fn relative(&self, named: &Named) -> Option<Vec<u8>> {
        match named {
            Named::Path(path) => self.paths.iter().find_map(|root| {
                let rest = path.strip_prefix(&root[..])?.strip_prefix(b"/")?;
                leads_down(rest).then(|| rest.to_vec())
            }),
            Named::Internal(path) => {
                let path = path.split(|byte| *byte == b'?').next()?;
                let prefix = self.prefix.as_ref()?;
                let rest = path.strip_prefix(&prefix[..])?;
                let mut relative = Vec::with_capacity(rest.len());
                decode(rest, &mut relative).ok()?;
                leads_down(&relative).then_some(relative)
            }
        }
    }
}

/// Returns true if a relative path stays in its folder, according to its text. The app may use names that are not
/// allowed in the path of a public file, such as `report 10:30.pdf`. The kernel checks that no link leads outside.
fn leads_down(path: &[u8]) -> bool {
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    path.len() <= MOST_BYTES && !path.contains(&0) && path.split(|byte| *byte == b'/').all(is_name)
}

impl Files {
    /// The file that `named` names, and its path relative to its root. An error if it could not be opened this time.
    pub(crate) fn named(&self, named: &Named, reach: Reach<'_>) -> io::Result<Option<(File, Stat, Vec<u8>)>> {
        for root in &self.roots {
            let Some(relative) = root.relative(named) else { continue };
            if let Some((file, stat)) = unless_missing(root.folder.file(&relative, reach))? {
                return Ok(Some((file, stat, relative)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Symlinks;

    fn root(prefix: Option<&str>) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(prefix, folder.path(), Symlinks::Inside).expect("the folder");
        (folder, root)
    }

    #[test]
    fn an_absolute_path_counts_only_in_its_folder() {
        let (folder, root) = root(None);
        let base = folder.path().to_str().expect("UTF-8");
        for (rest, expected) in [
            ("/a.pdf", Some("a.pdf")),
            ("/a b/report 10:30 ~1.pdf", Some("a b/report 10:30 ~1.pdf")),
            ("/.hidden/%2e%2e", Some(".hidden/%2e%2e")),
            ("", None),
            ("/", None),
            ("-secret/a", None),
            ("/../a", None),
            ("/a/../../b", None),
            ("/a//b", None),
            ("/./a", None),
            ("/a/", None),
            ("/a\0b", None),
        ] {
            let named = Named::Path(format!("{base}{rest}").into_bytes());
            assert_eq!(
                root.relative(&named).as_deref(),
                expected.map(str::as_bytes),
                "{rest:?}"
            );
        }
        assert_eq!(root.relative(&Named::Path(b"/etc/passwd".to_vec())), None);
        assert_eq!(root.relative(&Named::Path(b"a.pdf".to_vec())), None);
        assert_eq!(root.relative(&Named::Internal(b"/a.pdf".to_vec())), None);
    }

    #[test]
    fn an_internal_path_counts_only_after_its_prefix() {
        for prefix in ["/internal/", "/internal", "internal"] {
            let (_folder, root) = root(Some(prefix));
            for (path, expected) in [
                ("/internal/a.pdf", Some("a.pdf")),
                ("/internal/a%20b/c%3a.pdf?x=/../y", Some("a b/c:.pdf")),
                ("/internal/%252e%252e/x", Some("%2e%2e/x")),
                ("/internal", None),
                ("/internal/", None),
                ("/internals/a", None),
                ("/internal/../a", None),
                ("/internal/%2e%2e/a", None),
                ("/internal/a%2fb", None),
                ("/internal/a%00b", None),
                ("/internal/a%", None),
                ("/a.pdf", None),
            ] {
                let named = Named::Internal(path.as_bytes().to_vec());
                assert_eq!(
                    root.relative(&named).as_deref(),
                    expected.map(str::as_bytes),
                    "{path:?}"
                );
            }
        }
    }
}
