//! What a thread does without the GVL at the end of its slice, so that another thread has it when this one wants it back.

/// From Ruby 3.3 on the longest waiting thread has it already.
#[cfg(ruby_gte_3_3)]
pub(super) fn stay_out() {}

/// Returns once another thread has it. The longest waiting one is being woken, and would find it taken if this one went on
/// at once.
#[cfg(all(ruby_gte_3_2, not(ruby_gte_3_3)))]
pub(super) fn stay_out() {
    use super::contention::{is_wanted, switches};

    let before = switches();
    for _ in 0..MOST_PAUSES {
        std::thread::sleep(PAUSE);
        if switches() != before || !is_wanted() {
            break;
        }
    }
}

/// Returns once another thread seems to have it, which Ruby 3.1 does not tell: once other threads have used a processor.
/// Others may want nothing; the more often nobody has come, the sooner it returns.
#[cfg(not(ruby_gte_3_2))]
pub(super) fn stay_out() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Duration;

    /// What a thread uses at least that runs Ruby. The monitor's tick is shorter.
    const USED: Duration = Duration::from_micros(20);

    static PAUSES: AtomicU32 = AtomicU32::new(MOST_PAUSES);

    let before = used_by_others();
    let pauses = PAUSES.load(Relaxed);
    for _ in 0..pauses {
        std::thread::sleep(PAUSE);
        if used_by_others().saturating_sub(before) >= USED {
            PAUSES.store(MOST_PAUSES, Relaxed);
            return;
        }
    }
    PAUSES.store((pauses / 2).max(1), Relaxed);
}

/// Processor time of all threads of the process but the calling one.
#[cfg(not(ruby_gte_3_2))]
fn used_by_others() -> std::time::Duration {
    use rustix::time::{clock_gettime, ClockId};
    use std::time::Duration;

    let time = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    time(ClockId::ProcessCPUTime).saturating_sub(time(ClockId::ThreadCPUTime))
}

/// About twice this passes until the thread runs again; most threads that are woken run sooner.
#[cfg(not(ruby_gte_3_3))]
const PAUSE: std::time::Duration = std::time::Duration::from_micros(50);

/// After about a millisecond the machine has more to do than it can, and the slice is given up.
#[cfg(not(ruby_gte_3_3))]
const MOST_PAUSES: u32 = 10;
