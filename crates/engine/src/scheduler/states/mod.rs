//! States of the threads that serve, and the rules by which one wakes another.
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
//! If all threads are in `Starting`, or there are none, no job would run and no thread would poll: see `vacancy.rs`.
//!
//! The lock is the lock of the language, of which a process has one. In `Starting`, `Polling`, `Waiting`, `Wanting` and
//! `Blocked` a thread does not have it. A thread in `Wanting` is awake and certain to check the ready queue before it
//! sleeps again, so no other thread has to be woken for that; but it may have to wait long for the lock.
//!
//! # Invariants
//! * **No wake-up is lost.** A thread that adds work reads the states afterwards. A thread that goes to sleep changes
//!   its state first and looks for work afterwards. Both are sequentially consistent, so one of the two sees the other.
//! * **A thread polls whenever no thread would be woken.** One thread polls, or one is in a state that leads to a check
//!   of the ready queue (`Looking`, `Wanting`, the end of `Running`). This may take long if the lock is not free, so
//!   the monitor ticks while any thread is in such a state, and polls itself after a whole tick without progress
//!   ([`help()`]). The same holds if no thread has begun for a second ([`Vacancy`]).
//! * **The number of threads never exceeds the limit.** A thread is counted (`Starting`) before it is made.
//!
//! The whole state is one integer, [`Census`], so every reader sees all threads at one moment. `tests/schedule` checks
//! the invariants with a model checker.

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

/// Work for the threads, and the means to wake a thread or the monitor for it.
pub(crate) trait Alarm {
    /// True if a thread with the lock would find something to run in the ready queue.
    fn has_jobs(&self) -> bool;

    /// Ends the current poll; if there is none, ends the next one.
    fn end_poll(&self);

    /// Ends the monitor's poll, if the monitor is polling.
    fn relieve_monitor(&self);

    /// Tells the monitor to watch: a thread has become active, or wants the lock.
    fn notify_monitor(&self);
}

/// Place where threads wait: one of them polls.
pub(crate) trait Site {
    /// True if a thread should take the lock for another reason: the engine has stopped, or the waiting room has a
    /// request.
    fn calls_back(&self) -> bool;

    /// Takes the reactor, unless another thread has it; then, if `begin` returns true, waits for events and handles
    /// them. Returns false if another thread has the reactor.
    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool;

    /// True if a thread has the reactor.
    fn is_polled(&self) -> bool;
}
