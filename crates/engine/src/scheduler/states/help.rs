//! What the monitor does about a tick in which threads ran and no job was finished.

use super::{Doing, Snapshot};

/// What the monitor has seen in such a tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    pub(crate) now: Snapshot,
    /// Whether something is ready to run.
    pub(crate) has_jobs: bool,
    /// Whether a thread has the lock and goes on using it, as far as is known: then another one could only stand in line.
    pub(crate) lock_is_taken: bool,
    /// Whether that has gone on for so long that one shall stand in line all the same.
    pub(crate) is_patience_over: bool,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Help {
    /// Somebody polls, and nobody could run what waits.
    Nothing,
    /// Wake a thread: it will want the lock and run what waits.
    WakeToRun,
    /// Wake a thread: it will poll, for which it needs no lock.
    WakeToPoll,
    /// Poll in the place of all threads.
    Poll,
}

/// What is to be done.
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
        // Whoever was woken to poll would see what is ready and want the lock instead, which may take long to come.
        Help::Poll
    }
}

/// Whether what waits in the ready queue cannot be run here soon, so that another worker shall have it. Where threads are free
/// and only the lock is not, that takes some patience: a collection of garbage is no reason to move, since whoever moves stays.
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
    fn nobody_is_disturbed_while_one_polls_and_nothing_waits() {
        assert_eq!(
            help(tick(&[Running, Polling, Waiting], false, true, false)),
            Help::Nothing
        );
    }

    #[test]
    fn a_sleeper_polls_where_nothing_waits() {
        assert_eq!(help(tick(&[Blocked, Waiting], false, false, false)), Help::WakeToPoll);
    }

    #[test]
    fn a_sleeper_runs_what_waits_when_the_lock_is_free() {
        assert_eq!(help(tick(&[Blocked, Waiting], true, false, false)), Help::WakeToRun);
        assert_eq!(
            help(tick(&[Blocked, Polling, Waiting], true, false, false)),
            Help::WakeToRun
        );
    }

    #[test]
    fn nobody_is_woken_to_stand_in_line_but_after_some_patience() {
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
    fn one_that_wants_the_lock_does_not_poll_so_the_monitor_does() {
        for has_jobs in [false, true] {
            for patience_is_over in [false, true] {
                let tick = tick(&[Running, Wanting, Waiting], has_jobs, true, patience_is_over);
                assert_eq!(help(tick), Help::Poll);
            }
        }
    }

    #[test]
    fn somebody_polls_after_at_most_two_ticks_whatever_the_threads_do() {
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
                            // Then one wants the lock, and the next tick polls.
                            Help::WakeToRun => assert!(!facts.now.any(Wanting)),
                            Help::Poll => assert!(!polls),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_waits_may_leave_when_nobody_here_can_run_it() {
        assert!(is_stuck(tick(&[Running, Running], true, false, false)));
        assert!(is_stuck(tick(&[Running, Wanting, Waiting], true, false, true)));
        assert!(is_stuck(tick(&[Running, Waiting], true, true, true)));
        assert!(
            !is_stuck(tick(&[Running, Wanting], true, true, false)),
            "the lock may be free soon"
        );
        assert!(
            !is_stuck(tick(&[Blocked, Waiting], true, false, true)),
            "one can be woken"
        );
    }
}
