//! A version of a file: its identity, its response fields, and its bytes.

use crate::clock::unix_seconds;
use crate::files::folder::{Folder, Reach};
use crate::http::response::Fields;
use crate::limits::budget::Budget;
use crate::limits::descriptors::{Counted, Descriptors};
use crate::sync::Mutex;
use fairlead_system::cached::Status;
use fairlead_wire::content_encoding::Coding;
use rustix::fs::Stat;
use rustix::io::{self, Errno};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};
use std::time::{Duration, UNIX_EPOCH};

/// Larger files are left to the file sender; smaller ones are copied into the response.
pub(crate) const SMALL_BYTES: u64 = 64 * 1024;

/// Identifies a version of a file: another version differs in one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Identity {
    #[allow(clippy::unnecessary_cast, reason = "the types differ between platforms")]
    pub(crate) fn of(stat: &Stat) -> Identity {
        Identity {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as u64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    /// The same from the status that the kernel has in memory.
    pub(crate) fn of_status(status: &Status) -> Identity {
        Identity {
            device: status.device,
            inode: status.inode,
            size: status.size,
            modified: status.modified,
            changed: status.changed,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The last modification, in seconds since 1970; 0 if it was earlier.
    pub(crate) fn modified(&self) -> u64 {
        u64::try_from(self.modified.0).unwrap_or(0)
    }

    /// Returns true if `self` was modified before `other`.
    pub(crate) fn is_older_than(&self, other: &Identity) -> bool {
        self.modified < other.modified
    }

    /// Returns true if the last change is so long before `now` (seconds since 1970) that another change would alter the
    /// times.
    fn is_settled(&self, now: u64) -> bool {
        i64::try_from(now).is_ok_and(|now| self.changed.0.max(self.modified.0) + 1 < now)
    }

    /// A strong entity tag (RFC 9110 §8.8.3), the same on all machines with this modification time of the file.
    fn etag(&self, coding: Option<Coding>) -> String {
        let (seconds, nanoseconds) = self.modified;
        let time = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        match coding {
            None => format!("\"{time:x}-{:x}\"", self.size),
            Some(coding) => format!("\"{time:x}-{:x}-{}\"", self.size, coding.token()),
        }
    }
}

/// The response fields of a version of a file.
#[derive(Debug)]
pub(crate) struct Description {
    pub(crate) identity: Identity,
    pub(crate) etag: String,
    pub(crate) last_modified: String,
}

impl Description {
    pub(crate) fn new(identity: Identity, coding: Option<Coding>) -> Description {
        // Never later than the response (RFC 9110 §8.8.2.1).
        let modified = UNIX_EPOCH + Duration::from_secs(identity.modified().min(unix_seconds()));
        Description {
            identity,
            etag: identity.etag(coding),
            last_modified: httpdate::fmt_http_date(modified),
        }
    }
}

/// The bytes of a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Memory(Arc<[u8]>),
    /// An open file, and the number of its device.
    File(Arc<Counted<File>>, u64),
}

impl Content {
    /// Reads a small file; a large file stays open instead. Returns `None` if the file does not have the size that its
    /// status says. `session`: the budget of the HTTP/2 connection, if only its response sends the file.
    pub(crate) fn of(
        file: File,
        identity: &Identity,
        descriptors: &Arc<Descriptors>,
        session: Option<&Arc<Budget>>,
        reach: Reach<'_>,
    ) -> io::Result<Option<Content>> {
        if identity.size > SMALL_BYTES {
            return Ok(Some(Content::File(
                stay_open(file, descriptors, session)?,
                identity.device,
            )));
        }
        Ok(Content::read(&file, identity.size, reach)?.map(Content::Memory))
    }

    /// Reads a small file. Returns `None` if it has become shorter, or if its status says that it is empty although it
    /// has content, as in `/proc`.
    pub(crate) fn read(file: &File, size: u64, reach: Reach<'_>) -> io::Result<Option<Arc<[u8]>>> {
        // One more byte shows if an empty file really is empty.
        let mut bytes = vec![0; size.max(1) as usize];
        let count = match reach {
            Reach::Memory => read_in_memory(file, &mut bytes, size as usize)?,
            Reach::Disk(_) => {
                read_most(file, &mut bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?
            }
        };
        if count as u64 != size {
            return Ok(None);
        }
        bytes.truncate(count);
        Ok(Some(bytes.into()))
    }
}

/// Reads data that the kernel has in memory; fails if that is not the whole file.
fn read_in_memory(file: &File, bytes: &mut [u8], size: usize) -> io::Result<usize> {
    match fairlead_system::files::read_in_memory(file, bytes) {
        Ok(count) if count >= size => Ok(count),
        // Too little may be in memory or in the file, and the file system may not support the flag.
        _ => Err(Errno::AGAIN),
    }
}

/// Reads until the space is full or the file ends; returns the number of bytes.
fn read_most(file: &File, bytes: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < bytes.len() {
        match file.read_at(&mut bytes[done..], done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Keeps a file open as long as it is being sent, if there is a descriptor for it.
fn stay_open(
    file: File,
    descriptors: &Arc<Descriptors>,
    session: Option<&Arc<Budget>>,
) -> io::Result<Arc<Counted<File>>> {
    let permit = descriptors.for_file().ok_or(Errno::MFILE)?.with_budget(session);
    Ok(Arc::new(Counted::new(file, permit)))
}

/// A file of the public folder, with one of its names and in one coding.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) description: Description,
    pub(crate) content_type: String,
    pub(crate) coding: Option<Coding>,
    /// Fields of every response for it, including 304.
    pub(crate) fields: Fields,
    content: Stored,
}

#[derive(Debug)]
enum Stored {
    Memory(Arc<[u8]>),
    /// Open as long as it is being sent; shared by all responses that send it.
    File(Mutex<Weak<Counted<File>>>),
}

impl Document {
    pub(crate) fn new(
        description: Description,
        content_type: String,
        coding: Option<Coding>,
        fields: Fields,
        content: &Content,
    ) -> Document {
        let content = match content {
            Content::Memory(bytes) => Stored::Memory(Arc::clone(bytes)),
            Content::File(file, _) => Stored::File(Mutex::new(Arc::downgrade(file))),
        };
        Document {
            description,
            content_type,
            coding,
            fields,
            content,
        }
    }

    /// Returns the bytes of exactly this version, or `None` if the file at `path` has changed.
    pub(crate) fn content(
        &self,
        folder: &Folder,
        path: &[u8],
        descriptors: &Arc<Descriptors>,
        reach: Reach<'_>,
    ) -> io::Result<Option<Content>> {
        let shared = match &self.content {
            Stored::Memory(bytes) => return Ok(Some(Content::Memory(Arc::clone(bytes)))),
            Stored::File(shared) => shared,
        };
        let open = shared.lock().upgrade();
        if let Some(file) = open {
            return Ok(Some(Content::File(file, self.description.identity.device)));
        }
        // Not under the lock: a thread that must not wait for the disk would wait for a thread that does.
        let (file, stat) = folder.file(path, reach)?;
        if Identity::of(&stat) != self.description.identity {
            return Ok(None);
        }
        let file = stay_open(file, descriptors, None)?;
        *shared.lock() = Arc::downgrade(&file);
        Ok(Some(Content::File(file, self.description.identity.device)))
    }

    /// Bytes that it takes in memory, without its key.
    pub(crate) fn weight(&self) -> u64 {
        let content = match &self.content {
            Stored::Memory(bytes) => bytes.len(),
            Stored::File(_) => 0,
        };
        (content + self.fields.bytes() + size_of::<Document>() + OVERHEAD) as u64
    }

    /// Returns true if it may be kept in memory: a later change of the file can be detected.
    pub(crate) fn is_settled(&self, now: u64) -> bool {
        self.description.identity.is_settled(now)
    }
}

/// Estimate for its strings, and for the entry of the map.
const OVERHEAD: usize = 256;
