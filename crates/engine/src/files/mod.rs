//! Files that are served without the app, or in its name.
//!
//! * `public.rs` finds the file that a request names, in the public folder, before the app is asked; `folder.rs` opens it so
//!   that nothing outside can be reached, `document.rs` is a version of it, kept in memory if it is small.
//! * `sendfile.rs`: files that the app names instead of sending them.
//! * `response.rs` makes a response of either; `caching.rs` and `pages.rs` have what names imply and error pages.
//!
//! All of it runs on the thread that polls, or the one that has just run the app; bytes of large files are the file sender's.

mod caching;
mod document;
mod folder;
mod pages;
mod public;
mod response;
mod sendfile;

pub(crate) use sendfile::Named;

use crate::clock::{milliseconds, DateCache};
use crate::config::FilesConfig;
use crate::connection::{Connection, Next};
use crate::engine::Engine;
use crate::http::exchange::Exchange;
use crate::limits::descriptors::Descriptors;
use crate::realtime::upgrade_offer;
use fairlead_wire::content_encoding::Accepted;
use fairlead_wire::{Framing, TargetForm};
use pages::Pages;
use public::{Found, Public};
use sendfile::Root;
use std::cell::RefCell;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

/// Requests for files that one connection may have answered before others get their turn.
const TURN: usize = 16;

const UNREACHABLE: &str = "a file could not be opened for want of descriptors or memory, or because the disk fails";

/// What is served from disk.
pub(crate) struct Files {
    public: Option<Public>,
    roots: Vec<Root>,
    pages: Pages,
}

thread_local! {
    static DATE: RefCell<DateCache> = RefCell::default();
}

impl Files {
    /// Opens every folder that is served.
    pub(crate) fn open(config: &FilesConfig, descriptors: &Arc<Descriptors>) -> std::io::Result<Files> {
        let public = Public::open(config, descriptors)?;
        let pages = public.as_ref().map(|public| Pages::read(public.folder()));
        let open = |(prefix, path): &(Option<String>, PathBuf)| Root::open(prefix.as_deref(), path, config.symlinks);
        Ok(Files {
            public,
            roots: config.sendfile_roots.iter().map(open).collect::<Result<_, _>>()?,
            pages: pages.unwrap_or_default(),
        })
    }

    /// The error page for a status, if there is one.
    pub(crate) fn page(&self, status: u16) -> Option<&[u8]> {
        self.pages.get(status).map(|page| &page[..])
    }

    /// Whether the app may name files in fields of its responses.
    pub(crate) fn has_roots(&self) -> bool {
        !self.roots.is_empty()
    }
}

impl Engine {
    /// Whether fields of a response may name files, so that the app can be told.
    pub fn sends_named_files(&self) -> bool {
        self.files.has_roots()
    }

    /// Answers the request that is ready on `connection`, and those that follow it, as long as they name files of the public
    /// folder. `Ready` for one that does not.
    pub(crate) fn serve_files(&self, connection: &mut Connection) -> Next {
        let Some(public) = &self.files.public else {
            return Next::Ready;
        };
        for turn in 1.. {
            let close = match catch_unwind(AssertUnwindSafe(|| self.serve_file(public, connection))) {
                Ok(Some(close)) => close,
                Ok(None) => break,
                Err(_) => {
                    self.log.error(format_args!(
                        "[BUG] a request for a file made the server panic; it is closed"
                    ));
                    return Next::Close;
                }
            };
            let now = milliseconds();
            let next = if turn == TURN {
                connection.respond_later(close, now)
            } else {
                connection.answered(close, &self.config, now)
            };
            if next != Next::Ready {
                return next;
            }
        }
        Next::Ready
    }

    /// Writes the response if the request is for a file; says whether the connection ends with it.
    fn serve_file(&self, public: &Public, connection: &mut Connection) -> Option<bool> {
        let (head, bytes) = (&connection.head, &connection.input[..]);
        let is_for_files = matches!(head.method.of(bytes), b"GET" | b"HEAD")
            && matches!(head.framing, Framing::Empty | Framing::Length(0))
            && head.parts.form != TargetForm::Asterisk
            && upgrade_offer(head, bytes).is_none();
        if !is_for_files {
            return None;
        }
        let path = match head.parts.path.of(bytes) {
            b"" => b"/",
            path => path,
        };
        let found = public.find(path, &|| Accepted::of(head, bytes));
        if let Ok(Found::Nothing) = found {
            return None;
        }
        let ended = DATE.with_borrow_mut(|date| {
            let mut exchange = Exchange::new(connection, self, date);
            match found {
                Ok(Found::Document(document, content)) => exchange.respond_with(&document, &content),
                Ok(Found::Folder) => exchange.redirect_to_folder(),
                Ok(Found::Nothing) => {}
                Err(_) => {
                    exchange.blame(UNREACHABLE);
                    exchange.respond_plainly_with(503, &[(b"retry-after", b"1")]);
                }
            }
            exchange.end()
        });
        self.counters().requests.fetch_add(1, Relaxed);
        self.counters().files.fetch_add(1, Relaxed);
        self.record(connection, &ended);
        Some(ended.close || ended.gone)
    }
}
