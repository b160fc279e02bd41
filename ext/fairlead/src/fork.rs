//! Tells the engine and the GVL code that this process is a forked child of the process that made the engine.

use std::ffi::c_int;

extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

/// Notices every fork in the child from now on, however the application forks.
pub(crate) fn init() {
    unsafe extern "C" fn forked() {
        fairlead_engine::note_fork();
        crate::gvl::forget_others();
    }

    // SAFETY: the function has this signature (POSIX). The handler stays for as long as the process does, as the
    // extension is never unloaded; it changes a few atomic numbers, which is allowed in the child of a process with
    // threads.
    unsafe { pthread_atfork(None, None, Some(forked)) };
}
