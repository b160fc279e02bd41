//! The allocator: returns freed memory to the operating system.

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
