//! The time in which this process could run.

use crate::machine::Moment;
use rustix::time::{clock_gettime, ClockId, Timespec};
use std::collections::VecDeque;
use std::time::Duration;

/// Delay of a check that does not count as a pause yet.
const TOLERANCE: Duration = Duration::from_millis(250);

/// Time for other processes after a pause: this process may run before them.
const HEAD_START: Duration = Duration::from_millis(500);

/// Number of stored pauses: more than fit in any timeout.
const MEMORY: usize = 200;

/// The clocks of [`RunningTime`]. Tests provide their own.
pub trait Clocks {
    /// A clock that never stops, not even while this process is stopped.
    fn monotonic(&self) -> Duration;
    /// Processor time that this process has used.
    fn used(&self) -> Duration;
}

/// The clocks of the system.
#[derive(Debug, Default)]
pub struct SystemClocks;

impl Clocks for SystemClocks {
    fn monotonic(&self) -> Duration {
        duration(clock_gettime(ClockId::Monotonic))
    }

    fn used(&self) -> Duration {
        duration(clock_gettime(ClockId::ProcessCPUTime))
    }
}

fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// Time since the start in which this process could run. The monotonic clock also counts while the process is stopped:
/// `docker pause`, a frozen virtual machine, SIGSTOP. After such a pause every deadline would be over, although no
/// process had the time to meet it.
///
/// The owner checks the clock at short intervals. A check that is late by more than a quarter of a second reveals a
/// pause, minus the time in which the process has used a processor.
#[derive(Debug)]
pub struct RunningTime<C = SystemClocks> {
    clocks: C,
    now: Moment,
    /// The monotonic clock and the processor time at the last check.
    seen: Duration,
    used: Duration,
    /// Start and end of each, on the monotonic clock.
    pauses: VecDeque<(Duration, Duration)>,
    /// End of the head start.
    head_start: Option<Moment>,
}

impl RunningTime {
    /// Begins now, at zero.
    pub fn begin() -> RunningTime {
        RunningTime::with(SystemClocks)
    }

    /// Continues at this time.
    pub fn resume(now: Moment) -> RunningTime {
        RunningTime {
            now,
            ..RunningTime::begin()
        }
    }
}

impl<C: Clocks> RunningTime<C> {
    /// Begins now, with these clocks.
    pub fn with(clocks: C) -> RunningTime<C> {
        RunningTime {
            now: Duration::ZERO,
            seen: clocks.monotonic(),
            used: clocks.used(),
            pauses: VecDeque::new(),
            head_start: None,
            clocks,
        }
    }

    /// The time at the last check.
    pub fn now(&self) -> Moment {
        self.now
    }

    /// Checks the clocks, and returns the time. `within`: the longest time that should have passed since the last
    /// check.
    pub fn look(&mut self, within: Duration) -> Moment {
        let (seen, used) = (self.clocks.monotonic(), self.clocks.used());
        let passed = seen.saturating_sub(self.seen);
        let counted = match passed.saturating_sub(within) > TOLERANCE {
            true => passed.min(within.saturating_add(used.saturating_sub(self.used))),
            false => passed,
        };
        if counted < passed {
            self.note_pause(self.seen + counted, seen);
        }
        (self.seen, self.used) = (seen, used);
        self.now += counted;
        self.head_start = match self.head_start {
            None if counted < passed => Some(self.now + HEAD_START),
            until => until.filter(|until| self.now < *until),
        };
        self.now
    }

    /// Time that other processes have after a pause to show a sign of life; `None` if deadlines may pass. A late check in that time does not
    /// make it longer, so a process that is always late still has deadlines.
    pub fn head_start(&self) -> Option<Duration> {
        self.head_start.map(|until| until - self.now)
    }

    /// The part of the last `time` of the monotonic clock in which the process could run, for the age of a heartbeat.
    /// The last pause may have just ended.
    pub fn counted(&self, time: Duration) -> Duration {
        let present = self.clocks.monotonic();
        // Before the clock began, there was no pause.
        let since = present.saturating_sub(time);
        let latest = (present.saturating_sub(self.seen) > TOLERANCE).then_some((self.seen, present));
        let pauses = self.pauses.iter().copied().chain(latest);
        let paused = pauses.map(|(from, to)| to.saturating_sub(from.max(since))).sum();
        time.saturating_sub(paused)
    }

    fn note_pause(&mut self, from: Duration, to: Duration) {
        self.pauses.push_back((from, to));
        if self.pauses.len() > MEMORY {
            self.pauses.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Clocks that the test sets.
    struct Set {
        monotonic: Cell<Duration>,
        used: Cell<Duration>,
    }

    impl Clocks for &Set {
        fn monotonic(&self) -> Duration {
            self.monotonic.get()
        }

        fn used(&self) -> Duration {
            self.used.get()
        }
    }

    impl Set {
        fn new() -> Set {
            Set {
                monotonic: Cell::new(seconds(1000.0)),
                used: Cell::new(seconds(5.0)),
            }
        }

        fn advance(&self, passed: f64) {
            self.monotonic.set(self.monotonic.get() + seconds(passed));
        }

        fn compute(&self, used: f64) {
            self.used.set(self.used.get() + seconds(used));
        }

        fn look_after(&self, clock: &mut RunningTime<&Set>, passed: f64) {
            self.advance(passed);
            clock.look(seconds(1.0));
        }
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn time_between_two_looks_counts() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        set.look_after(&mut clock, 0.9);
        set.look_after(&mut clock, 1.2);
        assert_eq!((clock.now(), clock.counted(seconds(2.0))), (seconds(2.1), seconds(2.0)));
    }

    #[test]
    fn of_a_pause_only_the_usual_time_between_two_looks_counts() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        set.look_after(&mut clock, 1.0);
        set.look_after(&mut clock, 60.0);
        assert_eq!(clock.now(), seconds(2.0));
    }

    #[test]
    fn time_in_which_the_process_has_computed_counts_though_a_look_is_late() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        set.compute(2.5);
        set.look_after(&mut clock, 3.0);
        assert_eq!(clock.now(), seconds(3.0));
        set.compute(0.5);
        set.look_after(&mut clock, 60.0);
        assert_eq!(clock.now(), seconds(4.5));
    }

    #[test]
    fn events_before_in_and_after_a_pause_have_their_age_in_running_time() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        for passed in [1.0, 60.0, 1.0] {
            set.look_after(&mut clock, passed);
        }
        for (age, expected) in [(62.0, 3.0), (61.0, 2.0), (31.0, 1.0), (0.5, 0.5)] {
            assert_eq!(clock.counted(seconds(age)), seconds(expected), "{age}");
        }
    }

    #[test]
    fn a_pause_since_the_last_look_does_not_count_either() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        set.look_after(&mut clock, 1.0);
        set.advance(60.0);
        assert_eq!(
            (clock.counted(seconds(60.5)), clock.now()),
            (seconds(0.5), seconds(1.0))
        );
    }

    #[test]
    fn other_processes_have_a_head_start_after_a_pause() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        let mut head_start_after = |passed: f64| {
            set.look_after(&mut clock, passed);
            clock.head_start()
        };
        assert_eq!(head_start_after(1.0), None);
        assert_eq!(head_start_after(60.0), Some(HEAD_START));
        assert_eq!(head_start_after(0.1), Some(HEAD_START - seconds(0.1)));
        assert_eq!(head_start_after(60.0), None, "not at two late checks in a row");
        assert_eq!(head_start_after(60.0), Some(HEAD_START));
        assert_eq!(head_start_after(0.5), None);
    }

    #[test]
    fn many_pauses_are_not_kept_for_ever() {
        let set = Set::new();
        let mut clock = RunningTime::with(&set);
        let looks = MEMORY as u32 + 10;
        (0..looks).for_each(|_| set.look_after(&mut clock, 2.0));
        assert_eq!(clock.counted(seconds(2.0) * looks), seconds(1.0) * (MEMORY as u32 + 20));
    }

    #[test]
    fn the_clocks_of_the_system_go_on() {
        let mut clock = RunningTime::begin();
        while clock.look(seconds(1.0)) < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        assert!(SystemClocks.used() > Duration::ZERO);
    }
}
