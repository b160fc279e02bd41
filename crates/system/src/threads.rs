//! The calling thread: its number and its priority.

/// A number that no other running thread of this process has. Linux: the number that its tools show.
pub fn number() -> u32 {
    #[cfg(native_linux)]
    {
        rustix::thread::gettid().as_raw_nonzero().get() as u32
    }
    #[cfg(not(native_linux))]
    {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        static LAST: AtomicU32 = AtomicU32::new(0);
        thread_local! {
            static NUMBER: u32 = LAST.fetch_add(1, Relaxed) + 1;
        }
        NUMBER.with(|number| *number)
    }
}

/// Lowers the priority of this thread. Elsewhere than on Linux, the system would lower the priority of the whole process, so
/// nothing happens.
pub fn be_nice(niceness: i32) {
    #[cfg(native_linux)]
    let _ = rustix::process::nice(niceness);
    #[cfg(not(native_linux))]
    let _ = niceness;
}
