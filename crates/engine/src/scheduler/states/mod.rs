//! The states of the threads that serve, and the rules by which one wakes another.
//!
//! ```text
//!                      ┌──────────────────────── a job is there ───────────────────────┐
//!                      ▼                                                               │
//!   Starting ──▶ Looking ──┬── takes a job ──▶ Running ◀─── wants the lock ─── Blocked │
//!   (counted             ▲ │                      │ └───── gives it up ─────────▲      │
//!   before it            │ │                      │ the end of the job                 │
//!   exists)              │ │◀─────────────────────┘                                    │
//!                        │ │                                                           │
//!                        │ └── nothing to run: gives the lock up ──▶ Wanting ──────────┤
//!                        │                                            ▲  │  ▲          │
//!                        │                        the reactor is free │  │  │ woken    │
//!                        │                             Polling ◀──────┴──┴──┴─▶ Waiting
//!                        └── has the lock back ── Wanting                another thread has the reactor
//!
//!   Leaving: from any state; the count goes down and another thread is woken.
//! ```
//!
//! When all threads are in `Starting` or there are none, nothing here would be run or polled: `vacancy.rs`.
//!
//! The lock is that of the language, of which a process has one. In `Starting`, `Polling`, `Waiting`, `Wanting` and
//! `Blocked` a thread does not have it. A thread in `Wanting` is awake and certain to look at the ready queue before it
//! sleeps again, so no other thread has to be woken for that; but it may have to wait for the lock for long.
//!
//! # Invariants
//! * **No wake-up is lost.** A thread that adds work reads the states afterwards. A thread that goes to sleep changes
//!   its state first and looks for work afterwards. Both are sequentially consistent, so one of the two sees the other.
//! * **A thread polls whenever none would be woken.** One thread polls, or one is in a state that leads to a look at
//!   the ready queue (`Looking`, `Wanting`, the end of `Running`). As that may take long (the lock is not free), the
//!   monitor ticks while any thread is in such a state, and polls itself after a whole tick without progress
//!   ([`help()`]). The same if no thread has begun for a second ([`Vacancy`]).
//! * **There are never more threads than allowed.** A thread is counted (`Starting`) before it is made.
//!
//! The whole state is one word, [`Census`], so every reader sees all threads at one moment. `tests/schedule` checks the
//! invariants with a model checker.

mod census;
mod help;
mod parking;
mod threads;
mod vacancy;

pub(crate) use census::{Census, Doing, Snapshot};
pub(crate) use help::{help, is_stuck, Help, Tick};
pub(crate) use parking::Parking;
pub(crate) use threads::{Seat, Threads};
pub(crate) use vacancy::Vacancy;

/// Work for the threads, and the ways to make a thread or the monitor look at it.
pub(crate) trait Alarm {
    /// True if a thread with the lock would find something to run in the ready queue.
    fn has_jobs(&self) -> bool;

    /// Ends the poll that is waiting; if none is, ends the next one.
    fn end_poll(&self);

    /// Ends the monitor's poll, if the monitor is polling.
    fn relieve_monitor(&self);

    /// A thread has become active, or wants the lock: the monitor has to watch.
    fn notify_monitor(&self);
}

/// The place where threads wait: one of them polls.
pub(crate) trait Site {
    /// Whether there is another reason for a thread to take the lock: the engine has stopped, or the waiting room has a
    /// request.
    fn calls_back(&self) -> bool;

    /// Takes the reactor, unless another thread has it; then, if `begin` returns true, waits for events and handles
    /// them. False if another thread has the reactor.
    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool;

    /// Whether a thread has the reactor.
    fn is_polled(&self) -> bool;
}
