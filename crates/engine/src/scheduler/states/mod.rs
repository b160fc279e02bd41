//! Who does what: the states of the threads that serve, and the rules by which one wakes another.
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
//!                        └── has the lock back ── Wanting                somebody else has the reactor
//!
//!   Leaving: from any state; the count goes down and somebody else is woken.
//! ```
//!
//! The lock is the language's, of which a process has one. In `Starting`, `Polling`, `Waiting`, `Wanting` and `Blocked` a
//! thread is without it. `Wanting` means: awake, and sure to look at what is ready before it sleeps again, so nobody has to be
//! woken for that; but it may have to stand in line for the lock for long.
//!
//! # What always holds
//! * **No wake-up is lost.** Whoever makes work looks at the states afterwards; whoever goes to sleep says so first and looks
//!   for work afterwards. Both are sequentially consistent, so one of the two sees the other.
//! * **Somebody polls whenever nobody would be woken.** One thread polls, or one is in a state that leads to a look
//!   (`Looking`, `Wanting`, the end of `Running`). As that may take long (the lock is not free), the monitor ticks while any
//!   thread is in such a state, and polls itself where a whole tick has brought nothing ([`help()`]).
//! * **There are never more threads than allowed.** A thread is counted (`Starting`) before it is made.
//!
//! The whole state is one word, [`Census`], so every reader sees all threads at one moment. `tests/schedule` checks this with
//! a model checker.

mod census;
mod help;
mod parking;
mod threads;

pub(crate) use census::{Census, Doing, Snapshot};
pub(crate) use help::{help, is_stuck, Help, Tick};
pub(crate) use parking::Parking;
pub(crate) use threads::{Seat, Threads};

/// What the threads work on, as far as the rules have to know.
pub(crate) trait Site {
    /// Whether a thread with the lock would find something to run in the ready queue.
    fn has_jobs(&self) -> bool;

    /// Whether there is any other reason for a thread to come back to the lock: the end, or somebody in the waiting room.
    fn calls_back(&self) -> bool;

    /// Takes the reactor, if nobody has it, and then, if `begin` says yes, waits for events and deals with them. False if
    /// somebody has it.
    fn poll(&self, begin: &mut dyn FnMut() -> bool) -> bool;

    /// Whether somebody has the reactor.
    fn is_polled(&self) -> bool;

    /// Ends the poll that waits, or else the next one.
    fn end_poll(&self);

    /// Ends the monitor's poll, if it is the one that polls.
    fn relieve_monitor(&self);

    /// Something runs, or wants to: the monitor has to look.
    fn notify_monitor(&self);
}
