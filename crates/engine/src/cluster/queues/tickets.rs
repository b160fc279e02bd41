//! Tickets of requests in the waiting room. The kernel keeps the requests, and nobody can take one out of the middle; its ticket
//! says meanwhile if its client has left. All processes share the tickets.
//!
//! ```text
//!   put in:    issue: waits ── send ── (not sent: take)
//!   meanwhile: the client leaves: left                    the worker that has sent it
//!   take out:  receive ── take: free                      any worker
//! ```
//! A process may be killed at each point. Then a ticket may stay although its request is gone, until another request gets its
//! place. Nobody hears of the client of a request after its sender was killed, so the request still counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Places for tickets: more than requests in the waiting room, which has room for 10,922 at most. With fewer places, a later request
/// would take the place of a waiting one, which would count for `queue_limit` after its client has left.
pub(super) const PLACES: usize = 16384;

/// In a place: the client has left. The number of the ticket is above it; 0 in a free place.
const LEFT: u64 = 1;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// Number of the last ticket.
    last: AtomicU64,
    /// Number of clients in the places that have left, or more: it is too high after a process was killed. So a search through all
    /// places seldom is in vain.
    marked: AtomicU64,
    places: [AtomicU64; PLACES],
}

impl Default for Tickets {
    fn default() -> Tickets {
        Tickets {
            last: AtomicU64::new(0),
            marked: AtomicU64::new(0),
            places: [const { AtomicU64::new(0) }; PLACES],
        }
    }
}

impl Tickets {
    /// Issues a ticket for a request that is about to be sent: `unused`, or a new one if that is 0.
    pub(crate) fn issue(&self, unused: u64) -> u64 {
        let number = match unused {
            0 => self.last.fetch_add(1, SeqCst) + 1,
            unused => unused,
        };
        let before = self.place(number).swap(number << 1, SeqCst);
        self.unmark(before);
        number
    }

    /// The request was taken out, or not sent. A request without a ticket has the number 0.
    pub(crate) fn take(&self, number: u64) {
        if number != 0 {
            let of_request = |held| (held >> 1 == number).then_some(0);
            let before = self.place(number).fetch_update(SeqCst, SeqCst, of_request);
            self.unmark(before.unwrap_or(0));
        }
    }

    /// Notes that the client of a request has left, if the request still waits.
    pub(crate) fn leave(&self, number: u64) {
        self.marked.fetch_add(1, SeqCst);
        let (waits, left) = (number << 1, number << 1 | LEFT);
        if self
            .place(number)
            .compare_exchange(waits, left, SeqCst, SeqCst)
            .is_err()
        {
            self.marked.fetch_sub(1, SeqCst);
        }
    }

    /// This was in a place, and is not any more.
    fn unmark(&self, before: u64) {
        if before & LEFT == LEFT {
            self.marked.fetch_sub(1, SeqCst);
        }
    }

    /// True if the request waits, and its client may have left.
    pub(crate) fn waits(&self, number: u64) -> bool {
        self.place(number).load(SeqCst) >> 1 == number
    }

    /// True if at least `count` requests wait although their clients have left.
    pub(crate) fn have_left(&self, count: usize) -> bool {
        self.marked.load(SeqCst) >= count as u64 && self.left(count) == count
    }

    /// Number of requests that wait although their clients have left: up to `most`.
    fn left(&self, most: usize) -> usize {
        let has_left = |place: &&AtomicU64| place.load(Relaxed) & LEFT == LEFT;
        self.places.iter().filter(has_left).take(most).count()
    }

    fn place(&self, number: u64) -> &AtomicU64 {
        &self.places[number as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_client_leaves_only_while_its_request_waits() {
        let tickets = Tickets::default();
        let [first, second] = [tickets.issue(0), tickets.issue(0)];
        assert_eq!(tickets.left(9), 0);
        tickets.leave(first);
        assert_eq!(tickets.left(9), 1);
        assert!(tickets.waits(first));
        tickets.take(first);
        assert!(!tickets.waits(first));
        tickets.leave(first);
        tickets.take(second);
        tickets.leave(second);
        tickets.take(0);
        assert_eq!(tickets.left(9), 0);
    }

    #[test]
    fn a_ticket_that_was_not_used_is_issued_again() {
        let tickets = Tickets::default();
        let unused = tickets.issue(0);
        tickets.take(unused);
        assert_eq!(tickets.issue(unused), unused);
        tickets.leave(unused);
        assert_eq!((tickets.left(9), tickets.left(0)), (1, 0));
        assert_ne!(tickets.issue(0), unused);
    }

    /// Processes that were killed have neither sent nor taken out the first requests.
    #[test]
    fn a_later_request_gets_the_place_of_a_ticket_that_stays() {
        let tickets = Tickets::default();
        let stale: Vec<u64> = (0..3).map(|_| tickets.issue(0)).collect();
        stale.iter().for_each(|&number| tickets.leave(number));
        assert!(tickets.have_left(3) && !tickets.have_left(4));
        let later: Vec<u64> = (0..PLACES).map(|_| tickets.issue(0)).collect();
        assert!(!tickets.have_left(1));
        for &number in &stale {
            tickets.leave(number);
            tickets.take(number);
        }
        assert_eq!(tickets.left(9), 0, "the places belong to others");
        later.iter().for_each(|&number| tickets.leave(number));
        assert!(tickets.have_left(PLACES));
    }

    #[test]
    fn a_request_that_is_taken_out_while_its_client_leaves_is_not_counted_afterwards() {
        let tickets = Tickets::default();
        let [(leave, leaving), (take, taking)] = [(); 2].map(|()| mpsc::channel::<u64>());
        std::thread::scope(|threads| {
            threads.spawn(|| leaving.into_iter().for_each(|number| tickets.leave(number)));
            threads.spawn(|| taking.into_iter().for_each(|number| tickets.take(number)));
            for _ in 0..20_000 {
                let number = tickets.issue(0);
                leave.send(number).expect("a thread");
                take.send(number).expect("a thread");
            }
            drop((leave, take));
        });
        assert_eq!(tickets.left(usize::MAX), 0);
        assert_eq!(tickets.marked.into_inner(), 0);
    }
}
