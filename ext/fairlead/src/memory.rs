//! The allocator: gives back to the system what was freed.

/// Gives free memory back to the system if the allocator keeps it otherwise (glibc). Any thread may call it.
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
