//! Files that are served without the app, or that the app has named.
//!
//! * `public.rs` finds the file in the public folder that a request names, before the app is called. `folder.rs` opens
//!   it so that nothing outside can be reached. `document.rs` is a version of it, kept in memory if it is small.
//! * `file_system.rs`: the lookups that need no disk, by file system. `known_folders.rs`: folders that were found, for kernels
//!   that do not know them.
//! * `look_ups.rs`: lookups that may have to wait for a disk.
//! * `sendfile.rs`: files that the app names instead of sending them.
//! * `caching.rs`: media type and caching, by a file's name. `pages.rs`: error pages.
//!
//! `exchange/` makes the response. The polling thread finds and reads data in the kernel's memory; native threads do
//! the rest (`engine/native/look_ups.rs`), and the file sender sends large files. A thread that has run the app
//! releases the lock of the language to read data that is not in memory.

mod caching;
mod document;
mod file_system;
mod folder;
mod known_folders;
mod look_ups;
mod pages;
mod public;
mod sendfile;

pub(crate) use caching::content_type;
pub(crate) use document::{Content, Description, Document, Identity};
pub(crate) use folder::Reach;
#[cfg(test)]
pub(crate) use look_ups::LOOK_UP_TIME;
pub(crate) use look_ups::{Client, LookUp, LookUps, LOOK_STEP, THREADS};
pub(crate) use public::{Found, Public};
pub(crate) use sendfile::Named;

use crate::config::FilesConfig;
use crate::limits::descriptors::Descriptors;
use file_system::Mounts;
use pages::Pages;
use rustix::fs::Stat;
use rustix::io;
use sendfile::Root;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const UNREACHABLE: &str =
    "a file could not be opened: too few descriptors, too little memory, or a disk error";

/// A failed lookup is not tried again before the disk replies.
pub(crate) const NO_ANSWER: &str = "a file could not be opened: its disk does not answer";

/// The files that are served.
pub(crate) struct Files {
    public: Option<Public>,
    roots: Vec<Root>,
    pages: Pages,
    mounts: Mounts,
}

impl Files {
    /// Opens every folder that is served.
    pub(crate) fn open(config: &FilesConfig, descriptors: &Arc<Descriptors>) -> std::io::Result<Files> {
        let public = Public::open(config, descriptors)?;
        let pages = public.as_ref().map(|public| Pages::read(public.folder()));
        let pages = pages.unwrap_or_default().with(&config.error_page);
        let open =
            |(prefix, path): &(Option<String>, PathBuf)| Root::open(prefix.as_deref(), path, config.public_symlinks);
        Ok(Files {
            public,
            roots: config.sendfile_root.iter().map(open).collect::<Result<_, _>>()?,
            pages,
            mounts: Mounts::default(),
        })
    }

    /// The public folder with the files that are served before the app is called.
    pub(crate) fn public(&self) -> Option<&Public> {
        self.public.as_ref()
    }

    /// Opens the regular file at `path` of this machine, which the app has made. Returns `None` if there is no such
    /// file that can be opened.
    ///
    /// # Errors
    /// [`Errno::AGAIN`](io::Errno::AGAIN) if it is not within `reach`, and [`Errno::INTR`](io::Errno::INTR).
    pub(crate) fn at_path(&self, path: &[u8], reach: Reach<'_>) -> io::Result<Option<(File, Stat)>> {
        folder::open_path(path, reach, &self.mounts)
    }

    /// The error page for a status, if there is one.
    pub(crate) fn page(&self, status: u16) -> Option<&[u8]> {
        self.pages.get(status).map(|page| &page[..])
    }

    /// Returns true if the app may name files in response fields.
    pub(crate) fn has_roots(&self) -> bool {
        !self.roots.is_empty()
    }
}
