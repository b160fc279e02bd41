//! Decides the monitor's action after a tick in which threads ran and no job ended.

use super::{Doing, Snapshot};

/// Observations of the monitor at such a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub(crate) now: Snapshot,
    /// True if the ready queue has a job.
    pub(crate) has_jobs: bool,
    /// True if, as far as is known, a thread has the lock and keeps using it. Another thread could then only wait for
    /// it.
    pub(crate) lock_is_taken: bool,
    /// True if this has lasted so long that a thread should be woken to wait for the lock anyway.
    pub(crate) is_patience_over: bool,
}

/// Action of the monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// A thread polls, and no thread could run the waiting jobs.
    Nothing,
    /// Wake a thread: it will take the lock and run the waiting jobs.
    WakeToRun,
    /// Wake a thread: it will poll, for which it needs no lock.
    WakeToPoll,
    /// Poll in place of all threads.
    Poll,
}

/// Returns the monitor's action after `tick`.
pub(crate) fn help(tick: Tick) -> Help {
    let is_coming = tick.now.any(Doing::Wanting);
    let can_wake = tick.now.any(Doing::Waiting) && !is_coming;
    if can_wake && tick.has_jobs && (!tick.lock_is_taken || tick.is_patience_over) {
        Help::WakeToRun
    } else if tick.now.any(Doing::Polling) {
        Help::Nothing
    } else if can_wake && !tick.has_jobs {
        Help::WakeToPoll
    } else {
        // A thread woken to poll would find the ready job and wait for the lock instead, perhaps for long.
        Help::Poll
    }
}

/// True if jobs in the ready queue cannot be run here soon, so that another worker should have them. If threads are
/// free and only the lock is not, this takes some patience: a garbage collection is no reason to migrate a request,
/// because the request does not come back.
pub(crate) fn is_stuck(tick: Tick) -> bool {
    let wants_lock = tick.lock_is_taken || tick.now.any(Doing::Wanting);
    tick.now.free() == 0 || tick.is_patience_over && wants_lock
}

#[cfg(test)]
mod tests {
    use super::Doing::{Blocked, Polling, Running, Waiting, Wanting};
    use super::*;

    fn tick(threads: &[Doing], has_jobs: bool, lock_is_taken: bool, is_patience_over: bool) -> Tick {
        Tick {
            now: Snapshot::of(threads),
            has_jobs,
            lock_is_taken,
            is_patience_over,
        }
    }

    #[test]
    fn no_thread_is_woken_while_one_polls_and_no_job_waits() {
        assert_eq!(
            help(tick(&[Running, Polling, Waiting], false, true, false)),
            Help::Nothing
        );
    }

    #[test]
    fn a_waiting_thread_is_woken_to_poll_if_no_job_waits() {
        assert_eq!(help(tick(&[Blocked, Waiting], false, false, false)), Help::WakeToPoll);
    }

    #[test]
    fn a_waiting_thread_is_woken_to_run_a_job_if_the_lock_is_free() {
        assert_eq!(help(tick(&[Blocked, Waiting], true, false, false)), Help::WakeToRun);
        assert_eq!(
            help(tick(&[Blocked, Polling, Waiting], true, false, false)),
            Help::WakeToRun
        );
    }

    #[test]
    fn a_thread_is_woken_to_wait_for_the_lock_only_after_some_patience() {
        assert_eq!(
            help(tick(&[Running, Polling, Waiting], true, true, false)),
            Help::Nothing
        );
        assert_eq!(
            help(tick(&[Running, Polling, Waiting], true, true, true)),
            Help::WakeToRun
        );
    }

    #[test]
    fn the_monitor_polls_while_a_thread_wants_the_lock() {
        for has_jobs in [false, true] {
            for patience_is_over in [false, true] {
                let tick = tick(&[Running, Wanting, Waiting], has_jobs, true, patience_is_over);
                assert_eq!(help(tick), Help::Poll);
            }
        }
    }

    #[test]
    fn after_at_most_two_ticks_a_thread_or_the_monitor_polls() {
        let all = [Polling, Waiting, Wanting, Running, Blocked];
        for first in all {
            for second in all {
                for third in all {
                    for bits in 0..8 {
                        let facts = tick(&[first, second, third], bits & 1 > 0, bits & 2 > 0, bits & 4 > 0);
                        let polls = facts.now.any(Polling);
                        match help(facts) {
                            Help::Nothing => assert!(polls),
                            Help::WakeToPoll => assert!(!polls && facts.now.any(Waiting) && !facts.has_jobs),
                            // Then a thread wants the lock, and the monitor polls at the next tick.
                            Help::WakeToRun => assert!(!facts.now.any(Wanting)),
                            Help::Poll => assert!(!polls),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn jobs_may_leave_when_no_thread_here_can_run_them() {
        assert!(is_stuck(tick(&[Running, Running], true, false, false)));
        assert!(is_stuck(tick(&[Running, Wanting, Waiting], true, false, true)));
        assert!(is_stuck(tick(&[Running, Waiting], true, true, true)));
        assert!(
            !is_stuck(tick(&[Running, Wanting], true, true, false)),
            "the lock may be free soon"
        );
        assert!(
            !is_stuck(tick(&[Blocked, Waiting], true, false, true)),
            "a thread can be woken"
        );
    }
}
