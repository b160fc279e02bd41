//! Error pages: `404.html`, `500.html` and the like in the public folder itself, and files that the settings name. They
//! are read when the worker starts, so that they are available even if no file can be opened later.

use super::document::Content;
use super::folder::{Folder, Reach};
use rustix::fs::{open, Mode, OFlags};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

/// Larger pages are ignored.
const MOST_BYTES: u64 = super::document::SMALL_BYTES;

#[derive(Default)]
pub(crate) struct Pages(HashMap<u16, Arc<[u8]>>);

impl Pages {
    pub(crate) fn read(folder: &Folder) -> Pages {
        let is_file = AtomicBool::default();
        let reach = Reach::Disk(&is_file);
        let page = |status: u16| {
            let (file, stat) = folder.file(format!("{status}.html").as_bytes(), reach).ok()?;
            let size = u64::try_from(stat.st_size).ok().filter(|size| *size <= MOST_BYTES)?;
            let bytes = Content::read(&file, size, reach).ok().flatten()?;
            Some((status, bytes))
        };
        Pages((400..=599).filter_map(page).collect())
    }

    /// Adds the pages that the settings name. A file that has changed since the settings were checked, so that it cannot be
    /// used, is left out.
    pub(crate) fn with(mut self, named: &[(Vec<u16>, PathBuf)]) -> Pages {
        for (statuses, path) in named {
            let Some(page) = named_page(path) else { continue };
            self.0
                .extend(statuses.iter().map(|status| (*status, Arc::clone(&page))));
        }
        self
    }

    pub(crate) fn get(&self, status: u16) -> Option<&Arc<[u8]>> {
        self.0.get(&status)
    }
}

/// Reads a regular file that is not too large. Does not wait for the writer of a pipe.
fn named_page(path: &Path) -> Option<Arc<[u8]>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty()).ok()?);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let length = file.take(MOST_BYTES + 1).read_to_end(&mut bytes).ok()?;
    (length as u64 <= MOST_BYTES).then(|| bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{mknodat, FileType, CWD};

    #[test]
    fn a_named_page_must_be_a_small_regular_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name| folder.path().join(name);
        std::fs::write(path("good"), "page").expect("a file");
        std::fs::write(path("large"), vec![b'x'; MOST_BYTES as usize + 1]).expect("a file");
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let names = ["good", "large", "pipe", "missing", "."];
        let named: Vec<_> = (500..)
            .zip(names)
            .map(|(status, name)| (vec![status], path(name)))
            .collect();
        let pages = Pages::default().with(&named);
        let found: Vec<_> = (500..505).filter(|status| pages.get(*status).is_some()).collect();
        assert_eq!(found, [500]);
        assert_eq!(pages.get(500).map(|page| &page[..]), Some(&b"page"[..]));
    }
}
