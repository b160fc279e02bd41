//! The program of this process, as a descriptor that still leads to it after an update has replaced its file.

use rustix::fd::BorrowedFd;
use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::Result;

/// The program, opened before an update could replace its file.
#[cfg(not(native_linux))]
static OPENED: std::sync::OnceLock<File> = std::sync::OnceLock::new();

/// Opens it at the start, where the system knows nothing but its path.
pub fn note() {
    #[cfg(not(native_linux))]
    if let Ok(file) = std::env::current_exe().and_then(File::open) {
        let _ = OPENED.set(file);
    }
}

/// Opens it.
///
/// # Errors
/// If the system does not tell its place, or descriptors are short.
pub fn open() -> Result<File> {
    #[cfg(native_linux)]
    {
        File::open("/proc/self/exe")
    }
    #[cfg(not(native_linux))]
    {
        match OPENED.get() {
            Some(file) => file.try_clone(),
            None => File::open(std::env::current_exe()?),
        }
    }
}

/// Replaces this program by the one of a descriptor. macOS can only execute a path, which must still lead to that program.
///
/// # Errors
/// As execve(2).
pub fn execute(program: BorrowedFd<'_>, arguments: &[&CString], environment: &[CString]) -> nix::Result<Infallible> {
    #[cfg(not(target_vendor = "apple"))]
    {
        nix::unistd::fexecve(program, arguments, environment)
    }
    #[cfg(target_vendor = "apple")]
    {
        let path = rustix::fs::getpath(program).map_err(|error| nix::errno::Errno::from_raw(error.raw_os_error()))?;
        nix::unistd::execve(&path, arguments, environment)
    }
}

/// The first argument of this process, as `ps` shows it. The arguments that Rust knows are empty in an extension on musl and FreeBSD.
pub fn title() -> OsString {
    #[cfg(native_linux)]
    if let Ok(arguments) = std::fs::read("/proc/self/cmdline") {
        use std::os::unix::ffi::OsStringExt;
        return OsString::from_vec(arguments.split(|byte| *byte == 0).next().unwrap_or_default().to_vec());
    }
    std::env::args_os().next().unwrap_or_default()
}

/// Sets the name of the process, which an execution by descriptor changes. Linux only.
pub fn set_name(name: &str) {
    #[cfg(native_linux)]
    let _ = std::fs::write("/proc/self/comm", name);
    #[cfg(not(native_linux))]
    let _ = name;
}
