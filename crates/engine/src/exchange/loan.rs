//! Loans: while the app works on, the body sender sends the bytes of the response that the socket has not taken yet
//! (`body_sender.rs`). Without this, a client that reads at once would wait for the app's next write.
//!
//! ```text
//!            lend: a flush leaves bytes                           the sender ──┐
//!   Sent ─────────────────────────────▶ Lent: the loan has the output         │ a slice at a time, under the lock
//!    ▲ ◀── try_take_back: not in a slice ─┘ │    ▲                             └──▶
//!    │                                      │    │ waited: it has not run
//!    │               begin_wait: in a slice ▼    │
//!    └── waited ◀── Wait::run takes it ◀── InWait
//! ```
//! The lock of the loan guards the output and is held for one slice at most, so only the sender or the exchange uses it.
//! The exchange takes the output back before it does anything else with it. A slice may have to wait for the disk of
//! the temporary folder; then a [`Wait`](super::Wait) takes the output back, without the lock of the language. A
//! response that ends, in any way, ends its loan. A process that the app has forked has neither the sender nor a usable
//! lock: it gives the response up.

use super::body_sender::Senders;
use super::state::{OutputState, Owner};
use super::Exchange;
use crate::home::Home;
use crate::stream::output::{FileParts, Flush, Output};
use crate::sync::Mutex;
use crate::transport::Link;
use crate::worker::Worker;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::Arc;

/// See the head of this file. The loan is made on first use and may be repeated for the whole response.
pub(super) struct Loan {
    transport: Link,
    home: Home,
    senders: Arc<Senders>,
    /// A thread waits for the output.
    is_wanted: AtomicBool,
    /// The response has ended.
    is_over: AtomicBool,
    state: Mutex<LoanState>,
}

struct LoanState {
    /// `None` while the exchange has it.
    output: Option<Output>,
    /// The sender has the loan in its list.
    is_listed: bool,
    /// The client is gone, or the output cannot be continued.
    is_gone: bool,
}

/// An output that comes back.
pub(super) struct Returned {
    output: Output,
    pub(super) is_gone: bool,
}

/// The step after a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterSlice {
    /// The loan leaves the list.
    Over,
    /// There is more to send.
    More,
    /// The same, but the socket has taken nothing.
    Nothing,
}

impl Loan {
    fn new(transport: &Link, senders: &Arc<Senders>) -> Arc<Loan> {
        Arc::new(Loan {
            transport: Arc::clone(transport),
            home: Home::here(),
            senders: Arc::clone(senders),
            is_wanted: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            state: Mutex::new(LoanState {
                output: None,
                is_listed: false,
                is_gone: false,
            }),
        })
    }

    pub(super) fn transport(&self) -> &Link {
        &self.transport
    }

    /// Gives the output to the sender. Returns false, and leaves the output, if there is no sender.
    fn lend(self: &Arc<Self>, output: &mut Output) -> bool {
        let mut state = self.state.lock();
        if !state.is_listed && !self.senders.add(self) {
            return false;
        }
        state.is_listed = true;
        state.output = Some(std::mem::take(output));
        true
    }

    /// Takes the output back, unless the sender is in the middle of a slice.
    fn try_take_back(&self) -> Option<Returned> {
        self.state.try_lock()?.give_back()
    }

    /// Takes the output back, as soon as the sender's slice is over.
    pub(super) fn take_back(&self) -> Option<Returned> {
        self.is_wanted.store(true, SeqCst);
        let returned = self.state.lock().give_back();
        self.is_wanted.store(false, SeqCst);
        returned
    }

    /// Ends the loan, without waiting. The sender has a descriptor of the connection until it notices.
    fn end(&self) {
        if !self.home.is_here() {
            return;
        }
        self.is_over.store(true, SeqCst);
        // If the sender has the lock, it forgets the output after its slice.
        let is_listed = self.state.try_lock().is_none_or(|mut state| {
            state.output = None;
            state.is_listed
        });
        if is_listed {
            self.senders.wake();
        }
    }

    /// Returns true if the sender has something to send; otherwise the loan leaves the list.
    pub(super) fn is_due(&self) -> bool {
        // If the exchange has the lock, the sender looks again after its next event.
        let Some(mut state) = self.state.try_lock() else {
            return true;
        };
        if self.is_over.load(SeqCst) {
            state.output = None;
        }
        state.is_listed = state.output.is_some();
        state.is_listed
    }

    /// Sends as much as the client takes, at most a slice.
    pub(super) fn send_slice(&self, worker: &Worker) -> AfterSlice {
        if self.is_wanted.load(SeqCst) {
            return AfterSlice::More;
        }
        let mut state = self.state.lock();
        let LoanState {
            output: Some(output),
            is_gone,
            ..
        } = &mut *state
        else {
            state.is_listed = false;
            return AfterSlice::Over;
        };
        // Until the slice is over: after a panic in it, the output cannot be continued.
        *is_gone = true;
        worker.fault("send a body");
        let before = output.progress();
        let flushed = output.flush(&*self.transport, FileParts::Send);
        *is_gone = flushed.is_err();
        if *is_gone {
            // Nobody gets the bytes; the body may wait for long.
            *output = Output::default();
        }
        let after = match flushed {
            Ok(Flush::Pending) if output.progress() == before => AfterSlice::Nothing,
            Ok(Flush::Pending | Flush::Turn) => AfterSlice::More,
            Ok(Flush::Done) | Err(_) => AfterSlice::Over,
        };
        state.is_listed = after != AfterSlice::Over;
        after
    }

    /// The slice has panicked.
    pub(super) fn fail(&self) -> AfterSlice {
        self.state.lock().is_listed = false;
        AfterSlice::Over
    }
}

impl LoanState {
    fn give_back(&mut self) -> Option<Returned> {
        let is_gone = self.is_gone;
        self.output.take().map(|output| Returned { output, is_gone })
    }
}

impl Returned {
    pub(super) fn into_output(self) -> Output {
        self.output
    }
}

/// The loan of an exchange; ends with it.
pub(super) struct Lending(Arc<Loan>);

impl Drop for Lending {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Exchange<'_> {
    /// Lends the output, because the last flush has left bytes. Served files stay for the file sender.
    #[cold]
    pub(super) fn lend(&mut self) {
        let is_ours = matches!(self.owner, Owner::Server) && self.services.worker.is_at_home();
        if self.output != OutputState::Sent || !is_ours || self.stream.output.has_file() {
            return;
        }
        let lending = self
            .loan
            .get_or_insert_with(|| Lending(Loan::new(self.stream.transport(), self.services.body_sender.senders())));
        if lending.0.lend(&mut self.stream.output) {
            self.output = OutputState::Lent;
        }
    }

    /// The loan that has the output, for a [`Wait`](super::Wait) that takes it back.
    pub(super) fn lent(&self) -> Option<Arc<Loan>> {
        let lending = self.loan.as_ref().filter(|_| self.output == OutputState::Lent);
        lending.map(|lending| Arc::clone(&lending.0))
    }

    /// Returns true if another thread has the output. If it is lent, takes it back if that is possible at once.
    pub(super) fn is_away(&mut self) -> bool {
        match self.output {
            OutputState::Held | OutputState::Sent => false,
            OutputState::InWait => true,
            OutputState::Lent => !self.end_loan_with(Loan::try_take_back),
        }
    }

    /// Returns true if the body sender has the output and is sending. Then a [`Wait`](super::Wait) takes it back.
    pub fn is_lent(&mut self) -> bool {
        self.output == OutputState::Lent && self.is_away() && !self.is_gone()
    }

    /// Takes the output back if it is lent: blocks while the sender is in the middle of a slice. Nobody needs the
    /// output of a client that is gone.
    pub(super) fn end_loan(&mut self) {
        if self.output != OutputState::Lent {
            return;
        }
        match self.is_gone() {
            true => self.abort(),
            false => _ = self.end_loan_with(Loan::take_back),
        }
    }

    fn end_loan_with(&mut self, take_back: fn(&Loan) -> Option<Returned>) -> bool {
        if !self.services.worker.is_at_home() {
            // The process that serves sends the bytes.
            self.output = OutputState::InWait;
            self.abort();
            return false;
        }
        let Some(returned) = self.loan.as_ref().and_then(|lending| take_back(&lending.0)) else {
            return false;
        };
        if returned.is_gone {
            self.lost();
        }
        self.stream.output = returned.into_output();
        self.output = OutputState::Sent;
        true
    }
}
