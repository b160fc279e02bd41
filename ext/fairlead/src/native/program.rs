//! System calls that Ruby lacks and the processes of a server need: replaces this program without losing a signal,
//! makes files in memory, and notices the supervisor's end.

use super::held_back::hold_back;
use super::process;
use super::system_error;
use crate::strings::bytes;
use fairlead_system::{end_of_parent, memory_file, processes};
use magnus::rb_sys::AsRawValue;
use magnus::{function, prelude::*, Error, RArray, RModule, RString, Ruby};
use nix::sys::signal::SigSet;
use rustix::fs::fstat;
use rustix::io::{fcntl_dupfd_cloexec, Errno};
use rustix::process::{getpid, getppid, kill_process, Pid, Signal};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The link that this process ends with.
struct Watched {
    /// The process with the thread that watches. A forked process has the rest, and no thread.
    process: Pid,
    /// The copy for the thread.
    link: OwnedFd,
    limits: Limits,
}

/// Time until the process is killed.
#[derive(Clone, Copy)]
struct Limits {
    serving: Duration,
    /// If it does not serve: for its hooks, or to notice the end of the link by itself.
    idle: Duration,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

pub(super) fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("exec", function!(exec, 3))?;
    native.define_singleton_method("memory_file", function!(new_memory_file, 2))?;
    native.define_singleton_method("end_with_parent!", function!(end_with_parent, 1))?;
    native.define_singleton_method("outlive_parent!", function!(outlive_parent, 0))?;
    native.define_singleton_method("end_with_link!", function!(end_with_link, 3))
}

/// `exec(path, arguments, environment)`: replaces this program. `arguments`: with the title of the process first.
/// `environment`: one `NAME=value` each. The supervisor's signals are blocked, and stay blocked: they wait for the next
/// program. Returns only by raising: a SystemCallError, or the exception of a signal that came before.
fn exec(ruby: &Ruby, path: RString, arguments: RArray, environment: RArray) -> Result<(), Error> {
    let path = text(ruby, path)?;
    let (arguments, environment) = (texts(ruby, arguments)?, texts(ruby, environment)?);
    let error = hold_back(ruby, || {
        nix::unistd::execve(&path, &arguments, &environment).unwrap_err()
    })?;
    Err(system_error(ruby, &path.to_string_lossy(), &error.into()))
}

fn texts(ruby: &Ruby, array: RArray) -> Result<Vec<CString>, Error> {
    array
        .into_iter()
        .map(|value| text(ruby, RString::try_convert(value)?))
        .collect()
}

pub(super) fn text(ruby: &Ruby, string: RString) -> Result<CString, Error> {
    // SAFETY: the String is on the stack; its bytes are copied before any Ruby runs.
    let bytes = unsafe { bytes(ruby, string.as_raw()) }.to_vec();
    CString::new(bytes).map_err(|error| Error::new(ruby.exception_arg_error(), error.to_string()))
}

/// `memory_file(name, text)`: the descriptor of a file in memory that has this text and cannot change.
fn new_memory_file(ruby: &Ruby, name: RString, contents: RString) -> Result<RawFd, Error> {
    let name = text(ruby, name)?;
    // SAFETY: the String is on the stack, and no Ruby runs while its bytes are written.
    let contents = unsafe { bytes(ruby, contents.as_raw()) };
    let file = memory_file::constant(&name.to_string_lossy(), &[contents])
        .map_err(|error| system_error(ruby, "a file in memory", &error))?;
    Ok(file.into_raw_fd())
}

/// Has TERM sent to this process when its parent ends. False if the parent, which has the id `parent`, has ended already.
fn end_with_parent(parent: i32) -> bool {
    let parent = Pid::from_raw(parent);
    parent.into_iter().for_each(end_of_parent::expect);
    getppid() == parent
}

/// `outlive_parent!`: reverts `end_with_parent!`. The system would also send the signal when only the thread of the
/// supervisor ends that has started this process; all threads but one end when another program replaces the
/// supervisor's.
fn outlive_parent() {
    end_of_parent::ignore();
}

/// `end_with_link!(descriptor, serving, idle)`: ends this process when the other end of that link is closed, even if no Ruby
/// can run here any more. The engine closes its listeners at once, and finishes the requests that have arrived; the process is killed
/// after `serving` seconds, or `idle` seconds if it has no engine then. Another call for the same link changes the times.
fn end_with_link(ruby: &Ruby, descriptor: RawFd, serving: f64, idle: f64) -> Result<(), Error> {
    let failed = |error: std::io::Error| system_error(ruby, "the link", &error);
    if descriptor < 0 {
        return Err(failed(Errno::BADF.into()));
    }
    let seconds = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let limits = Limits {
        serving: seconds(serving),
        idle: seconds(idle),
    };
    // SAFETY: used here alone; if the number is not an open descriptor, the system says so.
    let link = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let mut known = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(watched) = known.as_mut() {
        if watched.process == getpid() && is_same_file(&watched.link, link) {
            watched.limits = limits;
            return Ok(());
        }
    }
    let link = fcntl_dupfd_cloexec(link, 0).map_err(|error| failed(error.into()))?;
    let watcher = std::thread::Builder::new()
        .name("fairlead link".into())
        .stack_size(64 * 1024);
    // SAFETY: `WATCHED` has it until this process, with its threads, has ended.
    let copy = unsafe { BorrowedFd::borrow_raw(link.as_raw_fd()) };
    watcher.spawn(move || watch(copy)).map_err(failed)?;
    let watched = Watched {
        process: getpid(),
        link,
        limits,
    };
    match known.replace(watched) {
        Some(former) if former.process == getpid() => std::mem::forget(former.link),
        former => drop(former),
    }
    Ok(())
}

fn is_same_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

fn watch(link: BorrowedFd<'_>) {
    SigSet::all().thread_block().unwrap_or_default(); // Ruby's own threads take the signals
    processes::wait_for_hang_up(link);
    let is_serving = process::drain_all();
    let limits = WATCHED
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .map(|watched| watched.limits);
    std::thread::sleep(limits.map_or(
        Duration::ZERO,
        |limits| if is_serving { limits.serving } else { limits.idle },
    ));
    let _ = kill_process(getpid(), Signal::KILL);
}
