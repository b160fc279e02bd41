//! Files that the app names instead of sending them: in a field of the head (`x-sendfile` and others, see
//! `files/sendfile.rs`), or with a body that responds to `to_path`. A [`Search`] finds and reads them, apart from the
//! exchange, because it may have to wait for a disk.

use super::{Exchange, Services};
use crate::files::{Content, Identity, Named, Reach, UNREACHABLE};
use crate::limits::budget::Budget;
use rustix::fs::Stat;
use rustix::io::{self, Errno};
use std::fs::File;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

const NO_SUCH_FILE: &str = "the app named a file that is not beneath a folder of `sendfile_root`, or cannot be read";

/// The search for a file that the app has named; see [`Exchange::search_named`] and [`Exchange::search_path`].
pub struct Search {
    services: Arc<Services>,
    /// The budget of the HTTP/2 connection that sends the file.
    budget: Option<Arc<Budget>>,
    wanted: Wanted,
    /// `None` until the search is over.
    found: Option<io::Result<Option<Found>>>,
}

enum Wanted {
    Named(Named),
    /// A path on this machine, and the length that the app has announced.
    Path(Vec<u8>, Option<u64>),
}

struct Found {
    content: Content,
    stat: Stat,
    /// The name relative to its folder, if the file replaces the body.
    name: Option<String>,
}

impl Exchange<'_> {
    /// The search for the file that a field of the head names, if a field does. [`Exchange::send_found`] ends it.
    pub fn search_named(&mut self) -> Option<Search> {
        let named = self.head.take_named()?;
        self.drop_announced_length();
        Some(self.search(Wanted::Named(named)))
    }

    /// The search for the file at `path`, which the app itself has opened or made. [`Exchange::send_found`] ends it.
    pub fn search_path(&self, path: &[u8]) -> Search {
        self.search(Wanted::Path(path.to_vec(), self.announced_length()))
    }

    fn search(&self, wanted: Wanted) -> Search {
        Search {
            services: Arc::clone(self.services),
            budget: self.stream.transport().budget().cloned(),
            wanted,
            found: None,
        }
    }

    /// Ends the head and sends the file that was found. If a field has named a file that is not in a folder of
    /// `sendfile_root`, responds with 404; if the file could not be opened or read this time, with 503. Returns false,
    /// with nothing changed, if there is no such file at the path, or if the app has announced another length, as it
    /// does for a part of a file.
    pub fn send_found(&mut self, search: Search) -> bool {
        match search.wanted {
            Wanted::Named(_) => {
                self.send_named(search.found.unwrap_or(Err(Errno::AGAIN)));
                true
            }
            Wanted::Path(..) => match search.found {
                Some(Ok(Some(found))) => self.send_body(&found),
                // If the server has no descriptor for it, the app reads the file itself.
                _ => false,
            },
        }
    }

    fn send_named(&mut self, found: io::Result<Option<Found>>) {
        let (status, fault) = match found {
            Ok(Some(found)) if self.send(&found.content, &found.stat, found.name.as_deref()) => return,
            Ok(_) => (404, NO_SUCH_FILE),
            Err(_) => (503, UNREACHABLE),
        };
        self.blame(fault);
        if self.take_back() {
            self.respond_plainly(status);
        } else {
            self.abort();
        }
    }

    fn send_body(&mut self, found: &Found) -> bool {
        let announced = self.drop_announced_length();
        let is_sent = self.send(&found.content, &found.stat, None);
        if !is_sent {
            self.announce_length(announced);
        }
        is_sent
    }
}

impl Search {
    /// Returns true if it is over. If not, [`Search::run`] continues it.
    pub fn is_over(&self) -> bool {
        self.found.is_some()
    }

    /// Uses only data that the kernel has in memory, without waiting for a disk. Returns false if that is not enough.
    pub fn glance(&mut self) -> bool {
        self.go(Reach::Memory);
        self.is_over()
    }

    /// Finds and reads the file, however long that takes: to be called without the lock of the language. A signal may
    /// end it early.
    pub fn run(&mut self) {
        let is_file = AtomicBool::default();
        self.go(Reach::Disk(&is_file));
    }

    fn go(&mut self, reach: Reach<'_>) {
        let found = self.find(reach);
        self.found = match found {
            Err(Errno::INTR) => None,
            Err(Errno::AGAIN) if reach.is_memory() => None,
            found => Some(found),
        };
    }

    fn find(&self, reach: Reach<'_>) -> io::Result<Option<Found>> {
        match &self.wanted {
            Wanted::Named(named) => match self.services.files.named(named, reach)? {
                Some((file, stat, name)) => {
                    self.read(file, stat, Some(String::from_utf8_lossy(&name).into_owned()), reach)
                }
                None => Ok(None),
            },
            Wanted::Path(path, announced) => match self.services.files.at_path(path, reach)? {
                Some((file, stat)) if announced.is_none_or(|length| length == Identity::of(&stat).size()) => {
                    self.read(file, stat, None, reach)
                }
                _ => Ok(None),
            },
        }
    }

    fn read(&self, file: File, stat: Stat, name: Option<String>, reach: Reach<'_>) -> io::Result<Option<Found>> {
        let (identity, descriptors) = (Identity::of(&stat), &self.services.config().descriptors);
        let content = Content::of(file, &identity, descriptors, self.budget.as_ref(), reach)?;
        Ok(content.map(|content| Found { content, stat, name }))
    }
}
