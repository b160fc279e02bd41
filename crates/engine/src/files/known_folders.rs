//! Folders that lookups have found, for kernels that do not tell which ones they have in memory.

use quick_cache::sync::Cache;

/// Most folders that are remembered.
const MOST: usize = 1024;

#[derive(Debug)]
pub(super) struct KnownFolders(Cache<Vec<u8>, ()>);

impl Default for KnownFolders {
    fn default() -> KnownFolders {
        KnownFolders(Cache::new(MOST))
    }
}

impl KnownFolders {
    pub(super) fn contains(&self, path: &[u8]) -> bool {
        self.0.get(path).is_some()
    }

    /// Notes whether there is a folder at `path`.
    pub(super) fn note(&self, path: &[u8], exists: bool) {
        if exists {
            self.0.insert(path.to_vec(), ());
        } else {
            self.0.remove(path);
        }
    }
}
