//! Error pages: `404.html`, `500.html` and the like in the public folder itself. They are read when the worker starts,
//! so that they are available even if no file can be opened later.

use super::document::Content;
use super::folder::{Folder, Reach};
use std::collections::HashMap;
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

    pub(crate) fn get(&self, status: u16) -> Option<&Arc<[u8]>> {
        self.0.get(&status)
    }
}
