//! Error pages: `404.html`, `500.html` and the like at the top of the public folder. They are read when the worker starts,
//! so that there is one even when nothing can be opened any more.

use super::document::Content;
use super::folder::Folder;
use std::collections::HashMap;
use std::sync::Arc;

/// Larger pages are left out.
const MOST_BYTES: u64 = super::document::SMALL_BYTES;

#[derive(Default)]
pub(crate) struct Pages(HashMap<u16, Arc<[u8]>>);

impl Pages {
    pub(crate) fn read(folder: &Folder) -> Pages {
        let page = |status: u16| {
            let (file, stat) = folder.file(format!("{status}.html").as_bytes()).ok()?;
            let size = u64::try_from(stat.st_size).ok().filter(|size| *size <= MOST_BYTES)?;
            let bytes = Content::read(&file, size).ok().flatten()?;
            Some((status, bytes))
        };
        Pages((400..=599).filter_map(page).collect())
    }

    pub(crate) fn get(&self, status: u16) -> Option<&Arc<[u8]>> {
        self.0.get(&status)
    }
}
