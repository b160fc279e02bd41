//! The post office: a [`Mailbox`] for each worker, through which the processes of one server publish to each other.
//!
//! A publisher whose letter a worker has no room for waits, so that nothing is lost while everyone goes on. It gives a worker
//! up that takes nothing for a while, reports that, and does not wait for it again before it has taken something. Whoever
//! takes letters out (the courier) never puts any in, so two workers that publish to each other cannot wait for each other.

use super::hub::Posted;
use super::letter::Letter;
use super::mailbox::{space, Mailbox, Put, Space, Taken};
use crate::board::{Board, Slot, SLOTS};
use crate::clock::milliseconds;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// How long a worker may take nothing out of a full mailbox before it is given up.
const PATIENCE_MILLISECONDS: u64 = 5000;

/// Longest wait for a mailbox to become writable before looking again.
const STEP: Timespec = nanoseconds(20_000_000);

/// The same where the system is short of something, of which no socket tells.
const SHORT_STEP: Timespec = nanoseconds(2_000_000);

const fn nanoseconds(count: i64) -> Timespec {
    Timespec {
        tv_sec: 0,
        tv_nsec: count,
    }
}

/// Made before the first fork and inherited by every worker, together with the [`Board`].
pub struct PostOffice {
    board: &'static Board,
    mailboxes: Vec<Mailbox>,
    /// For each worker that this process has given up, the letters that it had taken until then, plus one; else 0.
    given_up: [AtomicU64; SLOTS],
}

/// A worker that has no room for a letter.
struct Waiting {
    slot: usize,
    /// Whether its socket tells when there is.
    full: bool,
    /// Letters that it had taken when it was last seen taking one, and when that was.
    taken: u64,
    since: u64,
}

impl PostOffice {
    /// Opens the mailboxes; to be called before the first fork.
    ///
    /// # Errors
    /// If the socket pairs cannot be made.
    pub fn new(board: &'static Board) -> std::io::Result<PostOffice> {
        Ok(PostOffice {
            board,
            mailboxes: (0..SLOTS).map(|_| Mailbox::new()).collect::<Result<_, _>>()?,
            given_up: std::array::from_fn(|_| AtomicU64::new(0)),
        })
    }

    /// The board that says who reads their mail.
    pub fn board(&self) -> &'static Board {
        self.board
    }

    /// Publishes to all workers, from a process that has no hub. `block` as for [`Hub::publish`](super::Hub::publish).
    pub fn publish(&self, channel: &[u8], message: &[u8], block: &mut dyn FnMut(&mut dyn FnMut())) -> Posted {
        self.board.others().published.fetch_add(1, Relaxed);
        self.send(None, channel, message, block)
    }

    /// Sends to all workers that read their mail, but not to the `own` slot.
    pub(super) fn send(
        &self,
        own: Option<usize>,
        channel: &[u8],
        message: &[u8],
        block: &mut dyn FnMut(&mut dyn FnMut()),
    ) -> Posted {
        let counters = own.map_or(self.board.others(), |slot| self.board.slot(slot));
        let mut letter = Letter::new(channel, message);
        let mut waiting = Vec::new();
        let mut undelivered = 0;
        for slot in (0..self.board.mailboxes()).filter(|slot| Some(*slot) != own) {
            let reader = self.board.slot(slot);
            if !reader.reads_mail() {
                continue;
            }
            match self.put(slot, &mut letter, counters) {
                Put::Done => {}
                Put::Failed => undelivered += 1,
                _ if self.has_given_up(slot) => undelivered += 1,
                put => waiting.push(Waiting {
                    slot,
                    full: put == Put::Full,
                    taken: reader.mail_received.load(Relaxed),
                    since: milliseconds(),
                }),
            }
        }
        if !waiting.is_empty() {
            counters.mail_waits.fetch_add(1, Relaxed);
            block(&mut || undelivered += self.wait(&mut waiting, &mut letter, counters));
            // If `block` has not run it, or has not let it finish.
            undelivered += waiting.len();
        }
        counters.mail_lost.fetch_add(undelivered as u64, Relaxed);
        Posted { undelivered }
    }

    fn put(&self, slot: usize, letter: &mut Letter<'_>, counters: &Slot) -> Put {
        let put = self.mailboxes[slot].put(letter, &self.board.slot(slot).mail_bytes);
        if put == Put::Done {
            counters.mail_sent.fetch_add(1, Relaxed);
            if self.given_up[slot].load(Relaxed) != 0 {
                self.given_up[slot].store(0, Relaxed);
            }
        }
        put
    }

    fn has_given_up(&self, slot: usize) -> bool {
        self.given_up[slot].load(Relaxed) == self.board.slot(slot).mail_received.load(Relaxed) + 1
    }

    /// Waits until nobody is left in `waiting`. Returns how many did not get the letter although they read their mail.
    fn wait(&self, waiting: &mut Vec<Waiting>, letter: &mut Letter<'_>, counters: &Slot) -> usize {
        let mut undelivered = 0;
        while !waiting.is_empty() {
            self.pause(waiting);
            waiting.retain_mut(|worker| {
                let reader = self.board.slot(worker.slot);
                if !reader.reads_mail() {
                    return false;
                }
                let put = self.put(worker.slot, letter, counters);
                worker.full = put == Put::Full;
                let stays = matches!(put, Put::Full | Put::Short) && worker.deserves_patience(reader);
                if !stays && put != Put::Done {
                    self.given_up[worker.slot].store(worker.taken + 1, Relaxed);
                    undelivered += 1;
                }
                stays
            });
        }
        undelivered
    }

    fn pause(&self, waiting: &[Waiting]) {
        let full = waiting.iter().filter(|worker| worker.full);
        let mut fds: Vec<PollFd<'_>> = full
            .map(|worker| PollFd::from_borrowed_fd(self.mailboxes[worker.slot].sender(), PollFlags::OUT))
            .collect();
        let step = if fds.len() == waiting.len() { STEP } else { SHORT_STEP };
        let _ = poll(&mut fds, Some(&step));
    }

    /// Lets others know that worker number `slot` reads its mail from now on. What is there is for a predecessor.
    pub(super) fn open(&self, slot: usize) {
        let own = self.board.slot(slot);
        own.reads_mail.store(0, SeqCst);
        self.mailboxes[slot].clear(&mut space(), &own.mail_bytes);
        self.board.count_mailbox(slot);
        own.reads_mail.store(1, SeqCst);
    }

    /// Lets others know that worker number `slot` reads no more mail.
    pub(super) fn close(&self, slot: usize) {
        self.board.slot(slot).reads_mail.store(0, SeqCst);
    }

    /// Takes the oldest letter out of a worker's own mailbox.
    pub(super) fn take(&self, slot: usize, space: &mut Space) -> Taken {
        let own = self.board.slot(slot);
        let taken = self.mailboxes[slot].take(space, &own.mail_bytes);
        match taken {
            Taken::Mail(_) => _ = own.mail_received.fetch_add(1, Relaxed),
            Taken::Spoiled => _ = own.mail_lost.fetch_add(1, Relaxed),
            Taken::Nothing => {}
        }
        taken
    }

    /// Readable when worker number `slot` has mail.
    pub(super) fn receiver(&self, slot: usize) -> BorrowedFd<'_> {
        self.mailboxes[slot].receiver()
    }
}

impl Waiting {
    /// Whether the worker has taken a letter lately.
    fn deserves_patience(&mut self, reader: &Slot) -> bool {
        let (taken, now) = (reader.mail_received.load(Relaxed), milliseconds());
        if taken != self.taken {
            (self.taken, self.since) = (taken, now);
        }
        now - self.since < PATIENCE_MILLISECONDS
    }
}
