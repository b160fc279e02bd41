//! The public folder: finds the document for the path of a request. First the text of the path is checked
//! (`fairlead_wire::path`). Then one lookup of the file shows if the version in memory is still current.

use super::caching;
use super::document::{Content, Description, Document, Identity};
use super::folder::{unless_missing, Folder, Reach};
use crate::clock::unix_seconds;
use crate::config::FilesConfig;
use crate::http::response::Fields;
use crate::limits::descriptors::Descriptors;
use fairlead_wire::content_encoding::{is_compressible, Accepted, Coding};
use fairlead_wire::{relative_path, PathKind, PathRules};
use quick_cache::sync::Cache;
use quick_cache::Weighter;
use rustix::io::{self, Errno};
use std::sync::Arc;

/// Assumed size of a small file, to estimate how many fit into the cache.
const USUAL_BYTES: u64 = 4 * 1024;

const INDEX: &[u8] = b"index.html";

pub(crate) struct Public {
    folder: Folder,
    rules: PathRules,
    cache_control: Vec<(String, String)>,
    descriptors: Arc<Descriptors>,
    /// Documents that were served recently, by path and coding.
    cache: Option<Cache<Vec<u8>, Arc<Document>, Bytes>>,
}

/// The result for a path.
pub(crate) enum Found {
    Document(Arc<Document>, Content),
    /// A folder with an index, named without the final slash.
    Folder,
    Nothing,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Vec<u8>, Arc<Document>> for Bytes {
    fn weight(&self, key: &Vec<u8>, document: &Arc<Document>) -> u64 {
        document.weight() + key.len() as u64
    }
}

impl Public {
    pub(crate) fn open(config: &FilesConfig, descriptors: &Arc<Descriptors>) -> std::io::Result<Option<Public>> {
        let Some(path) = &config.public_dir else {
            return Ok(None);
        };
        let items = usize::try_from(config.file_cache_bytes / USUAL_BYTES).unwrap_or(usize::MAX);
        let cache = (config.file_cache_bytes > 0).then(|| Cache::with_weighter(items, config.file_cache_bytes, Bytes));
        Ok(Some(Public {
            folder: Folder::open(path, config.public_symlinks)?,
            rules: PathRules {
                hidden: config.public_hidden,
            },
            cache_control: config.public_cache_control.clone(),
            descriptors: Arc::clone(descriptors),
            cache,
        }))
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Finds the document that `path` names; `path` is unchanged from the request. `accepted` is only called if there
    /// may be a choice.
    ///
    /// # Errors
    /// If the file cannot be opened now: there are no descriptors left, or the disk fails. [`Errno::AGAIN`] if it is not
    /// within `reach`.
    pub(crate) fn find(&self, path: &[u8], accepted: &dyn Fn() -> Accepted, reach: Reach<'_>) -> io::Result<Found> {
        let mut name = Vec::with_capacity(path.len() + INDEX.len() + 1);
        let Ok(kind) = relative_path(path, self.rules, &mut name) else {
            return Ok(Found::Nothing);
        };
        if let Some(folder) = folder_of(&name).filter(|_| !reach.is_memory()) {
            self.folder.learn(folder, reach);
        }
        match kind {
            PathKind::Folder => {
                append_index(&mut name);
                Ok(match self.negotiate(&mut name, accepted, reach)? {
                    // An index must be a file.
                    Found::Folder => Found::Nothing,
                    found => found,
                })
            }
            PathKind::File => match self.negotiate(&mut name, accepted, reach)? {
                Found::Folder => {
                    append_index(&mut name);
                    let index = unless_missing(self.folder.look(&name, reach))?;
                    Ok(match index.is_some_and(|seen| seen.is_regular()) {
                        true => Found::Folder,
                        false => Found::Nothing,
                    })
                }
                found => Ok(found),
            },
        }
    }

    /// The path as passed to the folder: decoded, without the leading slash. `None` if it leads nowhere.
    pub(crate) fn name_of(&self, path: &[u8]) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        relative_path(path, self.rules, &mut name).ok().map(|_| name)
    }

    /// Returns true if `path` names something in a folder that is known to exist, below the public folder. Then the
    /// path hardly belongs to the application.
    pub(crate) fn is_below_known_folder(&self, path: &[u8]) -> bool {
        let mut name = Vec::new();
        let is_valid = relative_path(path, self.rules, &mut name).is_ok();
        is_valid && folder_of(&name).is_some_and(|folder| self.folder.is_known(folder))
    }

    /// The file with this name, or its sibling in the coding that the client prefers. `Folder` if it is a folder.
    fn negotiate(&self, name: &mut Vec<u8>, accepted: &dyn Fn() -> Accepted, reach: Reach<'_>) -> io::Result<Found> {
        let seen = match unless_missing(self.folder.look(name, reach))? {
            Some(seen) if seen.is_folder() => return Ok(Found::Folder),
            Some(seen) if seen.is_regular() => seen,
            _ => return Ok(Found::Nothing),
        };
        reach.note_file();
        let Some((document, content)) = self.document(name, None, seen.identity, reach)? else {
            return Ok(Found::Nothing);
        };
        if !is_compressible(document.content_type.as_bytes()) {
            return Ok(Found::Document(document, content));
        }
        let length = name.len();
        for coding in accepted().best_first() {
            name.truncate(length);
            name.extend_from_slice(coding.suffix().as_bytes());
            let sibling = match self.folder.look(name, reach) {
                Ok(seen) => seen,
                Err(Errno::AGAIN) if reach.is_memory() => return Err(Errno::AGAIN),
                Err(_) => continue,
            };
            if !sibling.is_regular() || sibling.identity.is_older_than(&document.description.identity) {
                continue;
            }
            if let Some((document, content)) = self.document(name, Some(coding), sibling.identity, reach)? {
                return Ok(Found::Document(document, content));
            }
        }
        Ok(Found::Document(document, content))
    }

    /// The document at `name`, from memory if its version is `seen`. With a coding, `name` ends with its suffix, and
    /// the media type is derived from the name without it.
    fn document(
        &self,
        name: &[u8],
        coding: Option<Coding>,
        seen: Identity,
        reach: Reach<'_>,
    ) -> io::Result<Option<(Arc<Document>, Content)>> {
        if let Some(cache) = &self.cache {
            let known = match coding {
                None => cache.get(name),
                Some(_) => cache.get(&key(name, coding)[..]),
            };
            if let Some(document) = known.filter(|document| document.description.identity == seen) {
                if let Some(content) =
                    unless_missing(document.content(&self.folder, name, &self.descriptors, reach))?.flatten()
                {
                    return Ok(Some((document, content)));
                }
            }
        }
        let Some((file, stat)) = unless_missing(self.folder.file(name, reach))? else {
            return Ok(None);
        };
        let identity = Identity::of(&stat);
        let Some(content) = Content::of(file, &identity, &self.descriptors, None, reach)? else {
            return Ok(None);
        };
        let document = Arc::new(self.describe(name, coding, identity, &content));
        if let Some(cache) = &self.cache {
            // All bytes belong to one version: if the file has changed since, its times have changed, too.
            let is_same = || {
                self.folder
                    .look(name, reach)
                    .is_ok_and(|seen| seen.identity == identity)
            };
            if document.is_settled(unix_seconds()) && is_same() {
                cache.insert(key(name, coding), Arc::clone(&document));
            }
        }
        Ok(Some((document, content)))
    }

    fn describe(&self, name: &[u8], coding: Option<Coding>, identity: Identity, content: &Content) -> Document {
        let suffix = coding.map_or(0, |coding| coding.suffix().len());
        // The name has passed the rules of `fairlead_wire::path`, so it is UTF-8.
        let name = String::from_utf8_lossy(&name[..name.len() - suffix]);
        let description = Description::new(identity, coding);
        let content_type = caching::content_type(&name);
        let mut fields = Fields::default();
        fields.add(b"etag", description.etag.as_bytes());
        fields.add(b"last-modified", description.last_modified.as_bytes());
        let cache_control = caching::cache_control(&self.cache_control, &name);
        fields.add(b"cache-control", cache_control.as_bytes());
        if is_compressible(content_type.as_bytes()) {
            fields.add(b"vary", b"accept-encoding");
        }
        Document::new(description, content_type, coding, fields, content)
    }
}

/// The folder of a file below the public folder; `None` for a file in the public folder itself.
fn folder_of(name: &[u8]) -> Option<&[u8]> {
    let end = name.iter().rposition(|byte| *byte == b'/')?;
    Some(&name[..end])
}

/// The byte that marks a coding cannot occur in a name.
fn key(name: &[u8], coding: Option<Coding>) -> Vec<u8> {
    let mut key = name.to_vec();
    if coding.is_some() {
        key.push(0);
    }
    key
}

fn append_index(name: &mut Vec<u8>) {
    if !name.is_empty() {
        name.push(b'/');
    }
    name.extend_from_slice(INDEX);
}
