//! Error pages: `404.html`, `500.html` and the like in the public folder itself, and files that the settings name. They
//! are read when the worker starts, so that they are available even if no file can be opened later.

use super::document::Content;
use super::folder::{Folder, Reach};
use std::collections::HashMap;
use std::path::PathBuf;
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

    /// Adds the pages that the settings name. A file that has gone since the settings were checked is left out.
    pub(crate) fn with(mut self, named: &[(Vec<u16>, PathBuf)]) -> Pages {
        for (statuses, path) in named {
            let Ok(bytes) = std::fs::read(path) else { continue };
            let page: Arc<[u8]> = bytes.into();
            self.0
                .extend(statuses.iter().map(|status| (*status, Arc::clone(&page))));
        }
        self
    }

    pub(crate) fn get(&self, status: u16) -> Option<&Arc<[u8]>> {
        self.0.get(&status)
    }
}
