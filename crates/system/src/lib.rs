//! System calls that differ between Linux and other systems, one facility per file, behind names that say what they do.
//!
//! Each file has the Linux implementation and, for macOS and FreeBSD, a portable one. `native_linux` (`build.rs`) chooses; the
//! portable one also runs on Linux, with `--cfg fairlead_portable`. docs/porting.md lists the differences.

pub mod alarm;
pub mod beneath;
pub mod cached;
pub mod clock;
pub mod datagrams;
pub mod descriptors;
pub mod end_of_parent;
pub mod files;
pub mod memory_file;
pub mod messages;
pub mod own_program;
pub mod pending_signals;
pub mod poller;
pub mod processes;
pub mod signals;
pub mod sockets;
pub mod threads;
pub mod wake_up;

/// True if the facilities of Linux are not used: on other systems, and in a build with `--cfg fairlead_portable`.
pub const IS_PORTABLE: bool = cfg!(not(native_linux));
