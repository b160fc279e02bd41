//! Waits without the GVL at the end of a slice, so that another thread has the GVL before this one asks for it again.

/// From Ruby 3.3 on the thread at the head of the queue already has the GVL.
#[cfg(ruby_gte_3_3)]
pub(super) fn stay_out() {}

/// Returns once another thread has the GVL. Ruby is waking the thread at the head of the queue; if this thread went on
/// at once, that thread would find the GVL taken.
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

/// Returns once another thread seems to have the GVL. Ruby 3.1 does not report this, so the function waits until other
/// threads have used processor time. Perhaps no other thread wants the GVL: the more often none has taken it, the
/// sooner the function returns.
#[cfg(not(ruby_gte_3_2))]
pub(super) fn stay_out() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::time::Duration;

    /// Least processor time of a thread that runs Ruby. The tick of the monitor takes less.
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

/// Processor time of all threads of the process except the calling one.
#[cfg(not(ruby_gte_3_2))]
fn used_by_others() -> std::time::Duration {
    use rustix::time::{clock_gettime, ClockId};
    use std::time::Duration;

    let time = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    time(ClockId::ProcessCPUTime).saturating_sub(time(ClockId::ThreadCPUTime))
}

/// About twice this time passes until the thread runs again. Most woken threads run sooner.
#[cfg(not(ruby_gte_3_3))]
const PAUSE: std::time::Duration = std::time::Duration::from_micros(50);

/// Most pauses, about a millisecond in total. After that the machine is overloaded, and the thread stops waiting.
#[cfg(not(ruby_gte_3_3))]
const MOST_PAUSES: u32 = 10;
