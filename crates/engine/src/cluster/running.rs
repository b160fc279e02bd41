//! The requests that the threads of all workers run at this moment, in memory that other processes read, for people who watch
//! the server. Each thread has an entry, which only this thread writes, without a lock. The number of an entry is odd
//! while it is written, and changes with each request, so a reader never takes parts of two requests for one.

use crate::clock::Nanos;
use crate::home::Home;
use fairlead_system::threads;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{fence, AtomicU64};
use std::time::Duration;

/// Number of threads with an entry. Requests of further threads are not shown.
pub const SHOWN_THREADS: usize = 512;

/// Length of a text, in words.
const WORDS: usize = 13;

/// Length of a text. A longer one is cut.
const BYTES: usize = WORDS * size_of::<u64>();

/// Attempts to read an entry that is being written.
const ATTEMPTS: usize = 4;

/// The entries of all workers. All zeros: no thread.
#[repr(C)]
#[derive(Debug)]
pub struct RunningRequests([Entry; SHOWN_THREADS]);

/// The entry of a thread: two cache lines.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Entry {
    /// See [`owner`]; 0 while it is free.
    owner: AtomicU64,
    number: AtomicU64,
    /// Nanoseconds on the monotonic clock when the request began to run; 0 between two requests.
    begun: AtomicU64,
    /// The method, a space and the path, without the query, which may contain secrets; then zeros.
    text: [AtomicU64; WORDS],
}

/// A running request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningRequest {
    /// Differs from the numbers of all other requests with the same index.
    pub number: u64,
    /// The slot of its worker.
    pub slot: usize,
    /// The id that the kernel gives its thread.
    pub thread: u32,
    /// Time for which it has run.
    pub time: Duration,
    /// "GET /path", perhaps cut, without the query.
    pub text: Vec<u8>,
}

/// The entry of this thread, until it is dropped. A process that the app has forked leaves the entry to its parent.
#[derive(Debug)]
pub(crate) struct Place {
    entry: &'static Entry,
    home: Home,
}

impl Default for RunningRequests {
    fn default() -> RunningRequests {
        RunningRequests(std::array::from_fn(|_| Entry::default()))
    }
}

impl RunningRequests {
    /// The running requests, each with its index and the time for which it has run.
    pub fn times(&self) -> impl Iterator<Item = (usize, Duration)> + '_ {
        let now = Nanos::now();
        let begun = self.0.iter().map(|entry| entry.begun.load(Relaxed)).enumerate();
        begun
            .filter(|(_, begun)| *begun > 0)
            .map(move |(index, begun)| (index, now - Nanos::from_number(begun)))
    }

    /// The running request with this index; `None` if it has ended.
    ///
    /// # Panics
    /// If `index` is not below [`SHOWN_THREADS`].
    pub fn request(&self, index: usize) -> Option<RunningRequest> {
        (0..ATTEMPTS).find_map(|_| self.0[index].read()).flatten()
    }

    /// Frees the entries of a worker that has ended.
    pub(crate) fn reset(&self, slot: usize) {
        let of_slot = |entry: &&Entry| entry.owner.load(Relaxed) >> 32 == slot as u64 + 1;
        self.0.iter().filter(of_slot).for_each(Entry::free);
    }

    /// Takes an entry for this thread; `None` if there is none.
    pub(crate) fn take_place(&'static self, slot: usize) -> Option<Place> {
        let owner = owner(slot, threads::number());
        let take = |entry: &&Entry| entry.owner.compare_exchange(0, owner, Relaxed, Relaxed).is_ok();
        let entry = self.0.iter().find(take)?;
        let home = Home::here();
        Some(Place { entry, home })
    }
}

/// One more than the slot of the worker, and the id that the kernel gives the thread.
fn owner(slot: usize, thread: u32) -> u64 {
    (slot as u64 + 1) << 32 | u64::from(thread)
}

impl Place {
    /// Shows a request that begins to run.
    pub(crate) fn begin(&self, now: Nanos, method: &[u8], path: &[u8]) {
        self.entry.begin(now, method, path);
    }

    /// Shows no request any more.
    pub(crate) fn end(&self) {
        if self.home.is_here() {
            self.entry.end();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.home.is_here() {
            self.entry.free();
        }
    }
}

impl Entry {
    fn begin(&self, now: Nanos, method: &[u8], path: &[u8]) {
        let text = joined(method, path);
        // A process that was killed may have left an odd number.
        let odd = self.number.load(Relaxed) | 1;
        self.number.store(odd, Relaxed);
        fence(Release);
        self.begun.store(now.to_number(), Relaxed);
        for (word, bytes) in self.text.iter().zip(text) {
            word.store(u64::from_ne_bytes(bytes), Relaxed);
        }
        self.number.store(odd.wrapping_add(1), Release);
    }

    fn end(&self) {
        self.begun.store(0, Relaxed);
    }

    fn free(&self) {
        self.end();
        self.owner.store(0, Relaxed);
    }

    /// Reads once. `None` if the thread writes meanwhile; `Some(None)` if no request runs.
    fn read(&self) -> Option<Option<RunningRequest>> {
        let number = self.number.load(Acquire);
        let (owner, begun) = (self.owner.load(Relaxed), self.begun.load(Relaxed));
        let text = self.text.each_ref().map(|word| word.load(Relaxed).to_ne_bytes());
        fence(Acquire);
        if number % 2 == 1 || self.number.load(Relaxed) != number {
            return None;
        }
        let text = text.as_flattened();
        let length = text.iter().position(|byte| *byte == 0).unwrap_or(BYTES);
        let slot = usize::try_from(owner >> 32).ok()?.checked_sub(1);
        let slot = slot.filter(|_| begun > 0);
        Some(slot.map(|slot| RunningRequest {
            number,
            slot,
            thread: owner as u32,
            time: Nanos::now() - Nanos::from_number(begun),
            text: text[..length].to_vec(),
        }))
    }
}

/// The method, a space and the path, as words.
fn joined(method: &[u8], path: &[u8]) -> [[u8; size_of::<u64>()]; WORDS] {
    let mut words = [[0; size_of::<u64>()]; WORDS];
    let text = words.as_flattened_mut();
    let method = &method[..method.len().min(BYTES - 1)];
    text[..method.len()].copy_from_slice(method);
    text[method.len()] = b' ';
    let rest = &mut text[method.len() + 1..];
    let length = path.len().min(rest.len());
    rest[..length].copy_from_slice(&path[..length]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    fn requests() -> &'static RunningRequests {
        Box::leak(Box::default())
    }

    fn shown(requests: &RunningRequests) -> Vec<String> {
        let found = requests.times().filter_map(|(index, _)| requests.request(index));
        found
            .map(|request| String::from_utf8(request.text).expect("a text"))
            .collect()
    }

    #[test]
    fn a_request_is_shown_while_it_runs() {
        let requests = requests();
        let place = requests.take_place(3).expect("a place");
        assert!(shown(requests).is_empty());
        place.begin(Nanos::now(), b"GET", b"/a");
        assert_eq!(shown(requests), ["GET /a"]);
        place.begin(Nanos::now(), b"DELETE", b"");
        assert_eq!(shown(requests), ["DELETE "]);
        let thread = threads::number();
        let request = requests.request(0).map(|request| (request.slot, request.thread));
        assert_eq!(request, Some((3, thread)));
        place.end();
        assert!(shown(requests).is_empty());
    }

    #[test]
    fn a_long_text_is_cut() {
        let requests = requests();
        let place = requests.take_place(0).expect("a place");
        place.begin(Nanos::now(), b"GET", &[b'/'; 1000]);
        assert_eq!(shown(requests), [format!("GET {}", "/".repeat(BYTES - 4))]);
        place.begin(Nanos::now(), &[b'X'; 1000], b"/");
        assert_eq!(shown(requests), [format!("{} ", "X".repeat(BYTES - 1))]);
    }

    #[test]
    fn a_place_is_free_again_once_its_thread_has_left_and_there_are_not_more_than_fit() {
        let requests = requests();
        let mut places: Vec<Place> = (0..SHOWN_THREADS).filter_map(|_| requests.take_place(0)).collect();
        assert_eq!(places.len(), SHOWN_THREADS);
        assert!(requests.take_place(0).is_none());
        places[5].begin(Nanos::now(), b"GET", b"/5");
        drop(places.swap_remove(5));
        assert!(shown(requests).is_empty());
        let place = requests.take_place(0).expect("a place");
        assert!(std::ptr::eq(place.entry, &requests.0[5]));
    }

    #[test]
    fn the_entries_of_a_worker_that_was_killed_are_freed() {
        let requests = requests();
        let [killed, other] = [1, 2].map(|slot| requests.take_place(slot).expect("a place"));
        killed.begin(Nanos::now(), b"GET", b"/killed");
        other.begin(Nanos::now(), b"GET", b"/other");
        killed.entry.number.fetch_add(1, Relaxed); // it was writing
        std::mem::forget(killed);
        assert_eq!(shown(requests), ["GET /other"]);
        requests.reset(1);
        let place = requests.take_place(1).expect("a place");
        place.begin(Nanos::now(), b"GET", b"/new");
        assert_eq!(shown(requests), ["GET /new", "GET /other"]);
    }

    #[test]
    fn no_reader_sees_parts_of_two_requests() {
        let requests = requests();
        let place = requests.take_place(0).expect("a place");
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0u64.. {
                    let letter = b'a' + (round % 26) as u8;
                    place.begin(Nanos::now(), &[letter; 3], &[letter; BYTES]);
                    if ends.load(Relaxed) {
                        break;
                    }
                }
            });
            let mut seen = 0;
            while seen < 1000 {
                let Some(request) = requests.request(0) else { continue };
                let letters = [&request.text[..3], &request.text[4..]].concat();
                assert!(letters.iter().all(|letter| *letter == letters[0]), "{request:?}");
                seen += 1;
            }
            ends.store(true, Relaxed);
        });
    }
}
