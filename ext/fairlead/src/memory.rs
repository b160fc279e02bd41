//! Returns memory to the operating system: of the allocator, and of the main thread's stack. Measures the memory of the process.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// True if garbage collections are expensive: see [`spare_collections`].
static SPARES_COLLECTIONS: AtomicBool = AtomicBool::new(false);

/// Returns free memory to the operating system if the allocator would keep it (glibc). Any thread may call it.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        extern "C" {
            fn malloc_trim(pad: usize) -> std::ffi::c_int;
        }
        // SAFETY: safe to call at any time, from any thread; it changes nothing that is in use.
        unsafe { malloc_trim(0) };
    }
}

/// Bytes of the process that are in memory; 0 if the system does not tell.
pub(crate) fn resident() -> u64 {
    // Pages: of the address space, and in memory.
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// Makes no garbage collection for the sake of memory in this process and its copies. Before Ruby 3.4 each major one writes to the call
/// caches of all methods, so that a copy shares them no more.
pub(crate) fn spare_collections() {
    SPARES_COLLECTIONS.store(true, Relaxed);
}

/// Returns true after [`spare_collections`].
pub(crate) fn spares_collections() -> bool {
    SPARES_COLLECTIONS.load(Relaxed)
}

/// Returns the unused part of the main thread's stack to the operating system; does nothing on another thread. Ruby reserves the
/// stack at its start. If the compiler checks such reservations page by page (`-fstack-clash-protection`, as in Debian since 13), this touches
/// all of its 8 MiB.
pub(crate) fn release_stack() {
    #[cfg(target_os = "linux")]
    {
        /// Bytes below this frame that are kept.
        const MARGIN: usize = 64 << 10;
        let local = 0_u8;
        let here = std::ptr::addr_of!(local) as usize;
        let Some(start) = start_of_main_stack(here) else { return };
        let page = rustix::param::page_size();
        let length = (here.saturating_sub(MARGIN) & !(page - 1)).saturating_sub(start);
        // SAFETY: the pages belong to the stack of this thread, far below its last frame, so nothing in them is in use. The kernel
        // provides empty ones when the stack grows again.
        let _ = unsafe {
            rustix::mm::madvise(
                start as *mut std::ffi::c_void,
                length,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
    }
}

/// The lowest address of the main thread's stack, if `address` is on it.
#[cfg(target_os = "linux")]
fn start_of_main_stack(address: usize) -> Option<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[stack]"))?;
    let (start, rest) = line.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(rest.split(' ').next()?, 16).ok()?;
    (start..end).contains(&address).then_some(start)
}
