//! The program of this process, as a descriptor that still leads to it after an update has replaced its file.

use rustix::fd::BorrowedFd;
use std::convert::Infallible;
use std::ffi::CString;
use std::fs::File;
use std::io::Result;

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
        File::open(std::env::current_exe()?)
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

/// Sets the name of the process, which an execution by descriptor changes. Linux only.
pub fn set_name(name: &str) {
    #[cfg(native_linux)]
    let _ = std::fs::write("/proc/self/comm", name);
    #[cfg(not(native_linux))]
    let _ = name;
}
