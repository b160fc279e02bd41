//! Returns memory to the operating system: of the allocator, and of the stacks of threads. Measures the memory of the process.

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
    if let Some(start) = start_of_main_stack(frame()) {
        release_from(start);
    }
}

/// Returns the unused part of this thread's stack to the operating system: the calls of a Rails application touch some
/// 100 KiB, and a thread keeps them. Does nothing on the stack of a fiber, or on the main thread.
pub(crate) fn release_thread_stack() {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            /// Lowest address and first address after the stack.
            static STACK: (usize, usize) = bounds_of_stack().unwrap_or_default();
        }
        let (start, end) = STACK.with(|&bounds| bounds);
        if (start..end).contains(&frame()) {
            release_from(start);
        }
    }
}

/// An address in the frame of the caller.
#[cfg(target_os = "linux")]
#[inline(always)]
fn frame() -> usize {
    let local = 0_u8;
    std::ptr::addr_of!(local) as usize
}

/// Returns the pages of this thread's stack from `start`, its lowest address, except for those near the current frame. As a part of
/// another function, its frame could have more than the margin.
#[cfg(target_os = "linux")]
#[inline(never)]
fn release_from(start: usize) {
    /// Bytes below this frame that are kept.
    const MARGIN: usize = 8 << 10;
    let page = rustix::param::page_size();
    let start = start.next_multiple_of(page);
    let length = (frame().saturating_sub(MARGIN) & !(page - 1)).saturating_sub(start);
    // SAFETY: the caller passes the lowest address of this thread's stack. So these pages belong to it, and lie below its last frame by
    // the margin: nothing in them is in use. The kernel provides empty ones when the stack grows again.
    let _ = unsafe {
        rustix::mm::madvise(
            start as *mut std::ffi::c_void,
            length,
            rustix::mm::Advice::LinuxDontNeed,
        )
    };
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

/// The lowest address of this thread's stack, and the first one after it. `None` on the main thread: with `ulimit -s unlimited`, the C
/// library counts all addresses below that are free at this moment, and the heap grows into them later.
#[cfg(target_os = "linux")]
fn bounds_of_stack() -> Option<(usize, usize)> {
    use nix::libc;
    use nix::unistd::{getpid, gettid};
    use std::mem::MaybeUninit;

    if gettid() == getpid() {
        return None;
    }
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut start, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the first call initializes the attributes if it succeeds, the second one reads them, and the third one ends their life. All
    // pointers are to variables of this function.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) != 0 {
            return None;
        }
        let failed = libc::pthread_attr_getstack(attributes.as_ptr(), &mut start, &mut size) != 0;
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        (!failed).then_some((start as usize, start as usize + size))
    }
}
