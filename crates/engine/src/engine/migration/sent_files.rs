//! Files of responses that migrate. A worker has a file open once, even if many responses send it; so these responses share
//! it in the next worker, too. Each file that leaves gets a number, which goes along with the descriptor.

use crate::connection::saved_response::{FileId, SentFile};
use crate::limits::descriptors::{Counted, Descriptors};
use crate::sync::Mutex;
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// See the head of this file.
pub(super) struct SentFiles {
    /// Identifies this worker among all that files come from.
    own: u64,
    departed: Mutex<Departed>,
    arrived: Mutex<HashMap<FileId, Weak<Counted<File>>>>,
}

/// Numbers of the files that have left, by their addresses. No other file gets the address as long as the weak reference is here.
#[derive(Default)]
struct Departed {
    numbers: HashMap<usize, (Weak<Counted<File>>, u64)>,
    last: u64,
}

impl SentFiles {
    pub(super) fn new() -> SentFiles {
        SentFiles {
            own: RandomState::new().hash_one(std::process::id()),
            departed: Mutex::default(),
            arrived: Mutex::default(),
        }
    }

    /// The identity of a file that leaves.
    pub(super) fn identify(&self, file: &SentFile) -> FileId {
        let mut departed = self.departed.lock();
        let address = Arc::as_ptr(file) as usize;
        if let Some((_, number)) = departed.numbers.get(&address) {
            return [self.own, *number];
        }
        departed.numbers.retain(|_, (file, _)| file.strong_count() > 0);
        departed.last += 1;
        let number = departed.last;
        departed.numbers.insert(address, (Arc::downgrade(file), number));
        [self.own, number]
    }

    /// The file with this identity: the one that is open here, or else `descriptor`.
    pub(super) fn open(&self, id: FileId, descriptor: OwnedFd, descriptors: &Arc<Descriptors>) -> SentFile {
        let mut arrived = self.arrived.lock();
        if let Some(file) = arrived.get(&id).and_then(Weak::upgrade) {
            return file;
        }
        arrived.retain(|_, file| file.strong_count() > 0);
        let file = Arc::new(Counted::new(File::from(descriptor), descriptors.for_file_of_transfer()));
        arrived.insert(id, Arc::downgrade(&file));
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(descriptors: &Arc<Descriptors>) -> SentFile {
        let permit = descriptors.for_file().expect("a permit");
        Arc::new(Counted::new(tempfile::tempfile().expect("a file"), permit))
    }

    fn copy(file: &SentFile) -> OwnedFd {
        file.try_clone().expect("a descriptor").into()
    }

    #[test]
    fn responses_that_share_a_file_share_it_in_the_next_worker() {
        let (here, there) = (Descriptors::with(1, 3), Descriptors::with(1, 3));
        let (leaving, going_on) = (SentFiles::new(), SentFiles::new());
        let (one, other) = (file(&here), file(&here));
        let first = going_on.open(leaving.identify(&one), copy(&one), &there);
        let second = going_on.open(leaving.identify(&one), copy(&one), &there);
        let third = going_on.open(leaving.identify(&other), copy(&other), &there);
        assert!(Arc::ptr_eq(&first, &second) && !Arc::ptr_eq(&first, &third));
        assert_eq!(there.used(), (0, 2));
        drop((first, second, third));
        assert_eq!(there.used(), (0, 0));
    }

    #[test]
    fn no_number_is_given_twice() {
        let (here, there) = (Descriptors::with(1, 3), Descriptors::with(1, 3));
        let (leaving, going_on) = (SentFiles::new(), SentFiles::new());
        let mut numbers = Vec::new();
        for _ in 0..20 {
            // The next file may have the same address.
            let one = file(&here);
            let id = leaving.identify(&one);
            drop(going_on.open(id, copy(&one), &there));
            numbers.push(id);
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 20);
    }
}
