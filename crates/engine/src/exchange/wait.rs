//! Waits for a client, and long writes. Work that may take long is done apart from the exchange, without the lock of
//! the language; afterwards the result is given back.

use super::loan::Loan;
use super::state::{OutputState, Reach};
use super::{Exchange, Gone, Services};
use crate::clock::Millis;
use crate::limits::meter::Meter;
use crate::spool::{Claim, Decision};
use crate::stream::output::{FileParts, Flush, Output};
use crate::transport::Link;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

/// Interval at which a thread in the queue for memory checks if other requests wait for it.
const LOOK: Duration = Duration::from_millis(20);

/// The part of an exchange that is needed to wait for its client, and to write to it; see [`Exchange::wait`] and
/// [`Exchange::write_apart`]. It owns the output of the connection meanwhile.
pub struct Wait {
    services: Arc<Services>,
    transport: Link,
    /// `None` if another wait or the body sender has it.
    output: Option<Output>,
    /// The loan from which this takes the output back. The wait for that is the whole wait.
    loan: Option<Arc<Loan>>,
    /// Bytes that were offered, bytes of them to be written, and bytes that were written.
    offered: usize,
    wanted: usize,
    taken: usize,
    end: End,
    /// The start of the first wait for the client.
    began: Option<Millis>,
    /// The start of the time in which the client has taken nothing, over several waits of one write; and the bytes that
    /// the transport had carried by then.
    stuck: Option<(Millis, Option<u64>)>,
}

/// State that several waits for one client share.
#[derive(Debug)]
pub(super) struct Waits {
    meter: Meter,
    /// The end of the last wait, and the bytes that the client had taken by then.
    until: Millis,
    taken: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client has taken more, or there is room for more.
    Moved,
    Interrupted,
    Gone,
    /// The client is aborted to free memory for other responses.
    Aborted,
}

impl Exchange<'_> {
    /// Blocks until the client takes more, at most for the write timeout. To be called without the lock of the
    /// language.
    ///
    /// # Errors
    /// If the client is gone, takes nothing for that time or, over all waits together, falls behind `write_min_rate` by
    /// that time.
    pub fn wait_for_client(&mut self) -> Result<(), Gone> {
        let mut wait = self.wait();
        wait.run();
        self.waited(wait).map(|_| ())
    }

    /// Like [`Exchange::wait_for_client`], in steps: returns an object that waits, apart from the exchange. Other
    /// threads may use the exchange meanwhile, but not write.
    pub fn wait(&mut self) -> Wait {
        self.begin_wait(0)
    }

    /// Begins a write of `length` bytes that may take long; [`Wait::write`] does it, apart from the exchange. Returns
    /// `None` if the bytes are not data, but the app's own framing: then only [`Exchange::write`] can write them.
    ///
    /// # Errors
    /// If the client is gone.
    pub fn write_apart(&mut self, length: usize) -> Result<Option<Wait>, Gone> {
        if self.own_chunks.is_some() {
            return Ok(None);
        }
        if self.is_away() {
            return Ok(Some(self.begin_wait(0)));
        }
        let wanted = self.begin_write(length)?.unwrap_or(0);
        let wait = self.begin_wait(wanted);
        Ok(Some(Wait {
            offered: length,
            ..wait
        }))
    }

    /// Returns a [`Wait`] that sends spooled bytes of the body, apart from the exchange. Returns `None` if nothing is
    /// spooled, or the socket is full.
    pub fn flush_apart(&mut self) -> Option<Wait> {
        let is_here = matches!(self.output, OutputState::Held | OutputState::Sent);
        let is_due = is_here && !self.is_gone() && self.stream.output.is_spooling();
        (is_due && self.stream.transport().has_room()).then(|| self.begin_wait(0))
    }

    pub(super) fn begin_wait(&mut self, wanted: usize) -> Wait {
        let loan = self.lent();
        let before = std::mem::replace(&mut self.output, OutputState::InWait);
        let is_here = matches!(before, OutputState::Held | OutputState::Sent);
        Wait {
            services: Arc::clone(self.services),
            transport: Arc::clone(self.stream.transport()),
            output: is_here.then(|| std::mem::take(&mut self.stream.output)),
            loan,
            offered: 0,
            wanted,
            taken: 0,
            end: End::Moved,
            began: None,
            stuck: None,
        }
    }

    /// Takes the result of a wait; to be called after each wait, even if it did nothing. Returns the number of offered
    /// bytes that need not be offered again.
    ///
    /// # Errors
    /// As for [`Exchange::wait_for_client`]; and if the client was aborted because others needed the memory.
    pub fn waited(&mut self, wait: Wait) -> Result<usize, Gone> {
        if let Some(output) = wait.output {
            self.stream.output = output;
            self.output = OutputState::Sent;
        } else if wait.loan.is_some() {
            self.output = OutputState::Lent;
        }
        self.end_write(wait.taken);
        if let Some(began) = wait.began {
            self.sending += Millis::now() - began;
        }
        let is_too_slow = wait.began.is_some_and(|began| !self.is_fast_enough(began));
        match wait.end {
            End::Aborted => {
                self.reach = Reach::Aborted;
                Err(self.lost())
            }
            End::Gone => Err(self.lost()),
            _ if is_too_slow => Err(self.lost()),
            _ if self.is_gone() => Err(Gone),
            _ if wait.taken == wait.wanted => Ok(wait.offered),
            _ => Ok(wait.taken),
        }
    }

    /// Returns true if the client keeps the minimum rate over all waits; the last of them began at `began`.
    fn is_fast_enough(&mut self, began: Millis) -> bool {
        if self.stream.transport().is_relayed() {
            return true;
        }
        let rate = self.services.config().write_rate();
        let now = Millis::now();
        let taken = self.body_bytes.saturating_sub(self.stream.output.pending());
        let waits = self.waits.get_or_insert(Waits {
            meter: Meter::begin(began),
            until: began,
            taken: 0,
        });
        waits.meter.forgive(began - waits.until);
        waits.meter.moved(taken.saturating_sub(waits.taken), now, rate);
        waits.until = now;
        waits.taken = taken;
        waits.meter.deadline(rate) > now
    }
}

impl Wait {
    /// Sends as much as the client takes, without waiting.
    pub fn flush(&mut self) {
        if let Some(output) = &mut self.output {
            if output.flush_whole(&*self.transport, FileParts::Send).is_err() {
                self.end = End::Gone;
            }
        }
    }

    /// Blocks until the client takes more, or there is room for more, at most for the write timeout. A signal ends it
    /// early.
    pub fn run(&mut self) {
        if self.take_back() {
            return;
        }
        let Some(mut output) = self.output.take() else {
            return self.wait_for_the_other();
        };
        self.end = self.wait_for_room(&mut output);
        self.output = Some(output);
    }

    /// Writes, and waits when necessary, until everything is written or a signal arrives.
    pub fn write(&mut self, bytes: &[u8]) {
        self.take_back();
        let bytes = &bytes[..self.wanted.min(bytes.len())];
        while self.end == End::Moved && self.taken < bytes.len() {
            let Some(output) = &mut self.output else {
                return self.wait_for_the_other();
            };
            let spill = self.services.spill();
            match output.push(&*self.transport, &bytes[self.taken..], spill, FileParts::Send) {
                Ok(0) => {}
                Ok(taken) => {
                    self.taken += taken;
                    self.stuck = None;
                }
                Err(_) => self.end = End::Gone,
            }
            if self.end == End::Moved && self.taken < bytes.len() {
                self.run();
            }
        }
    }

    /// Takes the output back from the body sender, if that has it. Then there may be room for more.
    fn take_back(&mut self) -> bool {
        let Some(loan) = self.loan.take() else { return false };
        if let Some(returned) = loan.take_back() {
            if returned.is_gone {
                self.end = End::Gone;
            }
            self.output = Some(returned.into_output());
        }
        true
    }

    /// Sleeps briefly, because another thread is in the middle of a write.
    fn wait_for_the_other(&self) {
        std::thread::sleep(LOOK / 4);
    }

    fn wait_for_room(&mut self, output: &mut Output) -> End {
        let patience = self.services.worker.write_timeout();
        // Nothing is pending while the total has no memory for the first byte. Then only the writer has bytes to offer.
        let offers_nothing = output.claim().is_some() && output.pending() == 0;
        loop {
            // Poll reports a socket as writable only when a third of its buffer is free, so a slow reader is offered
            // more.
            let before = output.progress();
            match output.flush_whole(&*self.transport, FileParts::Send) {
                Err(_) => return End::Gone,
                Ok(flushed) if flushed == Flush::Done && !offers_nothing || output.progress() > before => {
                    self.stuck = None;
                    return End::Moved;
                }
                Ok(_) => {}
            }
            let now = Millis::now();
            if has_memory(output) {
                return End::Moved;
            }
            if output.claim().is_some() {
                match self.relieve(output, now) {
                    Decision::Relieved if has_memory(output) => return End::Moved,
                    Decision::Relieved | Decision::Wait => {}
                    Decision::Own => return End::Aborted,
                }
            }
            let until = self.stuck_since(now) + patience;
            if now >= until {
                return End::Gone;
            }
            if output.claim().is_none() || offers_nothing {
                self.began.get_or_insert(now);
            }
            match self.poll(output.claim(), until - now) {
                Err(Errno::INTR) => return End::Interrupted,
                // The writer offers its bytes again, even if the socket has little room: see above.
                _ if offers_nothing => return End::Moved,
                _ => {}
            }
        }
    }

    fn stuck_since(&mut self, now: Millis) -> Millis {
        let carried = self.transport.carried();
        let (since, before) = self.stuck.get_or_insert((now, carried));
        if carried > *before || self.transport.is_relayed() {
            (*since, *before) = (now, carried);
        }
        *since
    }

    /// Asks for memory that other responses hold.
    fn relieve(&self, output: &Output, now: Millis) -> Decision {
        let relief = self.services.relief.upgrade();
        let decision = relief.map_or(Decision::Wait, |relief| relief.relieve(output.slowness(now)));
        if decision == Decision::Own {
            self.services.log_abort();
        }
        decision
    }

    /// Blocks until the client takes more or the claim is granted; with a claim at most for [`LOOK`].
    fn poll(&self, claim: Option<&Claim>, most: Duration) -> rustix::io::Result<usize> {
        let most = if claim.is_some() { most.min(LOOK) } else { most };
        let timeout = Timespec {
            tv_sec: most.as_secs() as _,
            tv_nsec: most.subsec_nanos() as _,
        };
        let signal = claim.and_then(Claim::signal);
        let (descriptor, event) = self.transport.signal(PollFlags::OUT);
        let mut waits_for = vec![PollFd::new(&descriptor, event)];
        waits_for.extend(signal.as_deref().map(|signal| PollFd::new(signal, PollFlags::IN)));
        poll(&mut waits_for, Some(&timeout))
    }
}

/// Returns true if the memory that the thread has waited for was granted.
fn has_memory(output: &Output) -> bool {
    output.claim().is_some_and(Claim::is_granted)
}
