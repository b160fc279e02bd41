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

/// Places for tickets. With more requests in the waiting room, the oldest lose theirs, and count as requests that wait.
const PLACES: usize = 4096;

/// In a place: the client has left. The number of the ticket is above it; 0 in a free place.
const LEFT: u64 = 1;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Tickets {
    /// Number of the last ticket.
    last: AtomicU64,
    places: [AtomicU64; PLACES],
}

impl Default for Tickets {
    fn default() -> Tickets {
        Tickets {
            last: AtomicU64::new(0),
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
        self.place(number).store(number << 1, SeqCst);
        number
    }

    /// The request was taken out, or not sent. A request without a ticket has the number 0.
    pub(crate) fn take(&self, number: u64) {
        if number != 0 {
            let of_request = |held| (held >> 1 == number).then_some(0);
            let _ = self.place(number).fetch_update(SeqCst, SeqCst, of_request);
        }
    }

    /// Notes that the client of a request has left, if the request still waits.
    pub(crate) fn leave(&self, number: u64) {
        let _ = self
            .place(number)
            .compare_exchange(number << 1, number << 1 | LEFT, SeqCst, SeqCst);
    }

    /// Number of requests that wait although their clients have left: up to `most`.
    pub(crate) fn left(&self, most: usize) -> usize {
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
        tickets.take(first);
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
        assert_eq!(tickets.left(9), 3);
        let later: Vec<u64> = (0..PLACES).map(|_| tickets.issue(0)).collect();
        assert_eq!(tickets.left(9), 0);
        for &number in &stale {
            tickets.leave(number);
            tickets.take(number);
        }
        assert_eq!(tickets.left(9), 0, "the places belong to others");
        later.iter().for_each(|&number| tickets.leave(number));
        assert_eq!(tickets.left(usize::MAX), PLACES);
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
    }
}
