//! Lookups in the public folder that may have to wait for a disk: waiting for a thread, and running.
//!
//! A disk or file server that does not reply blocks every thread that uses it. So the lookups of one client never run
//! on more than half of the threads, and one thread is left for names that begin with another folder: another file
//! system that is mounted there, or another disk, may work.

use crate::clock::Millis;
use crate::sync::{Condvar, Mutex};
use crate::transport::poller::Key;
use crate::work_queue::Item;
use fairlead_wire::content_encoding::Accepted;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

/// Number of native threads for lookups.
pub(crate) const THREADS: usize = 4;

/// Most lookups of one client that run at a time.
const MOST_OF_ONE: usize = THREADS / 2;

/// Most lookups that run at a time and begin with the same folder.
const MOST_IN_FOLDER: usize = THREADS - 1;

/// Most lookups that wait for a thread. When this is reached, the last lookup of the client with the most gives way.
const MOST_WAITING: usize = 1024;

/// The time that a request waits for a lookup; then it is served without it.
pub(crate) const LOOK_UP_TIME: Duration = Duration::from_secs(5);

/// Its time is counted in steps of this length, and a longer step counts as two: the process may have been stopped, and
/// the file server with it.
pub(crate) const LOOK_STEP: Duration = Duration::from_millis(250);

/// One lookup, for the request of a connection that is parked meanwhile.
#[derive(Debug)]
pub(crate) struct LookUp {
    pub(crate) key: Key,
    pub(crate) client: Client,
    /// The path of the request.
    pub(crate) path: Vec<u8>,
    pub(crate) accepted: Accepted,
    /// The decoded name of the path, see [`LookUp::top`].
    name: Vec<u8>,
    /// The path is known to name a file.
    is_file: AtomicBool,
    /// Milliseconds for which its request has waited.
    waited: AtomicU64,
}

/// The client of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Client {
    Address(IpAddr),
    /// A client without an address.
    Connection(Key),
}

impl LookUp {
    /// `name`: the path as passed to the folder, decoded; empty if it leads nowhere.
    pub(crate) fn new(key: Key, client: Client, path: &[u8], name: Vec<u8>, accepted: Accepted) -> Arc<LookUp> {
        Arc::new(LookUp {
            key,
            client,
            path: path.to_vec(),
            accepted,
            name,
            is_file: AtomicBool::default(),
            waited: AtomicU64::default(),
        })
    }

    /// Counts the time from `seen` until now as waiting time of its request. Returns the time of the next check, unless
    /// the request has waited for too long.
    pub(crate) fn wait_on(&self, seen: Millis, now: Millis) -> Option<Millis> {
        let step = (now - seen).min(2 * LOOK_STEP).as_millis() as u64;
        self.waited.fetch_add(step, Relaxed);
        (!self.has_waited_long()).then(|| now + LOOK_STEP)
    }

    fn has_waited_long(&self) -> bool {
        u128::from(self.waited.load(Relaxed)) >= LOOK_UP_TIME.as_millis()
    }

    /// The folder that the name begins with, independent of the client's spelling.
    fn top(&self) -> Option<&[u8]> {
        let end = self.name.iter().position(|byte| *byte == b'/')?;
        Some(&self.name[..end])
    }

    /// The flag that is set once the path is known to name a file.
    pub(crate) fn file_flag(&self) -> &AtomicBool {
        &self.is_file
    }

    /// Returns true if the path is known to name a file.
    pub(crate) fn is_file(&self) -> bool {
        self.is_file.load(Relaxed)
    }
}

#[derive(Default)]
pub(crate) struct LookUps {
    state: Mutex<LookUpState>,
    wake: Condvar,
}

#[derive(Default)]
struct LookUpState {
    waiting: VecDeque<Arc<LookUp>>,
    /// With the time of their start.
    running: Vec<(Arc<LookUp>, Millis)>,
    is_stopped: bool,
}

impl LookUpState {
    /// Returns true if enough threads are left, not counting the threads for which `counts` is true.
    fn leaves_threads(&self, look_up: &LookUp, counts: impl Fn(&(Arc<LookUp>, Millis)) -> bool) -> bool {
        let running = || self.running.iter().filter(|one| counts(one));
        let of_client = running().filter(|(other, _)| other.client == look_up.client).count();
        let in_folder = running().filter(|(other, _)| other.top() == look_up.top()).count();
        of_client < MOST_OF_ONE && in_folder < MOST_IN_FOLDER && running().count() < THREADS
    }

    /// Drops lookups with a connection that is gone, or no longer waits.
    fn forget_abandoned(&mut self) {
        self.waiting.retain(|look_up| Arc::strong_count(look_up) > 1);
    }

    /// Returns true if there is room for one more lookup of this client. Another client with more lookups gives up its
    /// last one; no request waits longer than [`LOOK_UP_TIME`] for it.
    fn makes_room(&mut self, client: Client) -> bool {
        if self.waiting.len() < MOST_WAITING {
            return true;
        }
        self.forget_abandoned();
        if self.waiting.len() < MOST_WAITING {
            return true;
        }
        let mut counts = HashMap::new();
        for look_up in &self.waiting {
            *counts.entry(look_up.client).or_insert(0_usize) += 1;
        }
        let own = counts.get(&client).copied().unwrap_or(0);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((greedy, _)) = most.filter(|(_, count)| *count > own + 1) else {
            return false;
        };
        let last = self.waiting.iter().rposition(|look_up| look_up.client == greedy);
        last.is_some_and(|last| self.waiting.remove(last).is_some())
    }

    fn take(&mut self, now: Millis) -> Option<Arc<LookUp>> {
        self.forget_abandoned();
        let next = self.waiting.iter().position(|one| self.leaves_threads(one, |_| true))?;
        let look_up = self.waiting.remove(next)?;
        self.running.push((Arc::clone(&look_up), now));
        Some(look_up)
    }
}

impl LookUps {
    /// Queues a lookup for the threads. Returns false if that is useless: the threads that it may use hang, too many
    /// lookups wait, or the threads have ended.
    pub(crate) fn push(&self, look_up: &Arc<LookUp>, now: Millis) -> bool {
        let mut state = self.state.lock();
        // The references of the thread that runs it, and of this list.
        let is_abandoned = |one: &Arc<LookUp>| Arc::strong_count(one) <= 2;
        let hangs = |(one, since): &(Arc<LookUp>, Millis)| {
            now - *since >= LOOK_UP_TIME && (one.has_waited_long() || is_abandoned(one))
        };
        if state.is_stopped || !state.leaves_threads(look_up, hangs) || !state.makes_room(look_up.client) {
            return false;
        }
        state.waiting.push_back(Arc::clone(look_up));
        self.wake.notify_one();
        true
    }

    /// Returns the next lookup that may run; waits for one, for at most `time`.
    pub(crate) fn next(&self, time: Duration) -> Item<Arc<LookUp>> {
        let mut state = self.state.lock();
        let mut next = state.take(Millis::now());
        if next.is_none() && !state.is_stopped {
            self.wake.wait_for(&mut state, time);
            next = state.take(Millis::now());
        }
        match next {
            _ if state.is_stopped => Item::Stopped,
            Some(look_up) => Item::Next(look_up),
            None => Item::Idle,
        }
    }

    /// Removes a lookup that a thread has finished, so that the thread may take another one.
    pub(crate) fn ended(&self, look_up: &Arc<LookUp>) {
        self.state.lock().running.retain(|(one, _)| !Arc::ptr_eq(one, look_up));
    }

    /// Ends the threads, as soon as their current lookups are over.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.is_stopped = true;
        state.waiting.clear();
        self.wake.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(client: Key, path: &str) -> Arc<LookUp> {
        let name = path[1..].replace("%6d", "m").into_bytes();
        LookUp::new(
            client,
            Client::Connection(client),
            path.as_bytes(),
            name,
            Accepted::none(),
        )
    }

    /// Starts the lookups that may run; returns their paths.
    fn start(look_ups: &LookUps) -> Vec<String> {
        let started = std::iter::from_fn(|| match look_ups.next(Duration::ZERO) {
            Item::Next(look_up) => Some(String::from_utf8_lossy(&look_up.path).into_owned()),
            _ => None,
        });
        started.collect()
    }

    #[test]
    fn one_client_has_half_of_the_threads() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let wanted: Vec<_> = [(1, "/a"), (1, "/b"), (1, "/c"), (2, "/d"), (3, "/e/x")]
            .into_iter()
            .map(|(client, path)| look_up(client, path))
            .collect();
        assert!(wanted.iter().all(|one| look_ups.push(one, now)));
        assert_eq!(start(&look_ups), ["/a", "/b", "/d", "/e/x"]);
        look_ups.ended(&wanted[0]);
        assert_eq!(start(&look_ups), ["/c"]);
    }

    #[test]
    fn one_thread_is_left_for_other_folders() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let wanted: Vec<_> = (0..5).map(|client| look_up(client, "/mounted/x")).collect();
        assert!(wanted.iter().all(|one| look_ups.push(one, now)));
        let other = look_up(9, "/other/x");
        assert!(look_ups.push(&other, now));
        assert_eq!(start(&look_ups).len(), 4);
        assert_eq!(look_ups.state.lock().waiting.len(), 2, "all of the mounted one");
    }

    #[test]
    fn a_folder_is_the_same_however_it_is_spelled() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let spelled = |client: Key| if client % 2 == 0 { "/mounted/x" } else { "/%6dounted/x" };
        let wanted: Vec<_> = (0..4).map(|client| look_up(client, spelled(client))).collect();
        assert!(wanted.iter().all(|one| look_ups.push(one, now)));
        assert_eq!(start(&look_ups).len(), MOST_IN_FOLDER);
    }

    #[test]
    fn a_look_up_that_only_hanging_threads_could_do_is_refused() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let wanted: Vec<_> = (0..3).map(|client| look_up(client, "/mounted/x")).collect();
        assert!(wanted.iter().all(|one| look_ups.push(one, now)));
        assert_eq!(start(&look_ups).len(), 3);
        let (next, later) = (look_up(5, "/mounted/y"), Millis::now() + LOOK_UP_TIME);
        assert!(look_ups.push(&next, now), "they may still come back");
        assert!(!look_ups.push(&next, later));
        assert!(look_ups.push(&look_up(5, "/other/y"), later));
        look_ups.ended(&wanted[1]);
        assert!(look_ups.push(&next, later));
    }

    #[test]
    fn a_pause_of_the_process_is_no_time_of_the_disk() {
        let (one, began) = (look_up(1, "/a"), Millis::now());
        let mut now = began + Duration::from_secs(3_600);
        let mut next = one.wait_on(began, now);
        let mut steps = 0;
        while let Some(then) = next {
            next = one.wait_on(now, then);
            now = then;
            steps += 1;
        }
        assert_eq!(now - began, Duration::from_secs(3_600) + LOOK_UP_TIME - 2 * LOOK_STEP);
        assert!(steps > 10 && one.has_waited_long());
    }

    #[test]
    fn nobody_looks_for_a_client_that_has_gone() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let (gone, here) = (look_up(1, "/a"), look_up(2, "/b"));
        assert!(look_ups.push(&gone, now) && look_ups.push(&here, now));
        drop(gone);
        assert_eq!(start(&look_ups), ["/b"]);
    }

    #[test]
    fn a_client_with_many_gives_way_to_others() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let greedy: Vec<_> = (0..=MOST_WAITING).map(|_| look_up(1, "/a")).collect();
        let taken = greedy.iter().filter(|one| look_ups.push(one, now)).count();
        assert_eq!(taken, MOST_WAITING);
        let other = look_up(2, "/b");
        assert!(look_ups.push(&other, now));
        assert_eq!(look_ups.state.lock().waiting.len(), MOST_WAITING);
        assert_eq!(start(&look_ups), ["/a", "/a", "/b"], "the oldest ones stay");
        let last = &greedy[MOST_WAITING - 1];
        assert_eq!(Arc::strong_count(last), 1, "the last one has given way");
    }

    #[test]
    fn the_queue_is_bounded() {
        let (look_ups, now) = (LookUps::default(), Millis::now());
        let wanted: Vec<_> = (0..=MOST_WAITING as Key).map(|client| look_up(client, "/a")).collect();
        let taken = wanted.iter().filter(|one| look_ups.push(one, now)).count();
        assert_eq!(taken, MOST_WAITING);
    }
}
