//! A descriptor that is readable once something was added to it: it wakes a thread that polls, in this process or in another one.
//!
//! Linux: an eventfd. Elsewhere: a FIFO without a name, open for reading and writing, which carries the numbers one by one. Both
//! are one descriptor, which can be sent to another process.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{read, write, Result};

/// Opens one. It never blocks, and is closed on exec.
///
/// # Errors
/// If descriptors are short.
pub fn open() -> Result<OwnedFd> {
    system::open()
}

/// Adds one: the descriptor is readable until [`take`].
pub fn ring(wake_up: impl AsFd) {
    let _ = add(wake_up, 1);
}

/// Adds a number.
///
/// # Errors
/// If the sum, or the number of waiting numbers, is too large.
pub fn add(wake_up: impl AsFd, number: u64) -> Result<()> {
    write(wake_up, &number.to_ne_bytes()).map(drop)
}

/// Takes the sum of the numbers; 0 if there are none.
pub fn take(wake_up: impl AsFd) -> u64 {
    system::take(wake_up)
}

#[cfg(native_linux)]
mod system {
    use super::*;
    use rustix::event::{eventfd, EventfdFlags};

    pub(super) fn open() -> Result<OwnedFd> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
    }

    pub(super) fn take(wake_up: impl AsFd) -> u64 {
        let mut number = [0; 8];
        read(wake_up, &mut number).map_or(0, |_| u64::from_ne_bytes(number))
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use rustix::fs::OFlags;
    use rustix::io::Errno;

    /// Bytes that are read at a time.
    const SPACE: usize = 512;

    pub(super) fn open() -> Result<OwnedFd> {
        let named = tempfile::Builder::new().prefix("fairlead-").make(|path| {
            mkfifo(path, Mode::S_IRUSR | Mode::S_IWUSR)?;
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let opened = rustix::fs::open(path, flags, rustix::fs::Mode::empty());
            Ok(opened.inspect_err(|_| _ = rustix::fs::unlink(path))?)
        });
        let (descriptor, _removed) = named
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?
            .into_parts();
        Ok(descriptor)
    }

    /// Each number was written at once, so it arrives whole.
    pub(super) fn take(wake_up: impl AsFd) -> u64 {
        let (mut sum, mut space) = (0u64, [0; SPACE]);
        while let Ok(count @ 1..) = read(&wake_up, &mut space) {
            let numbers = space[..count].chunks_exact(8);
            sum = numbers
                .map(|number| u64::from_ne_bytes(number.try_into().unwrap_or_default()))
                .fold(sum, u64::wrapping_add);
            if count < SPACE {
                break;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{poll, PollFd, PollFlags, Timespec};

    fn is_readable(wake_up: &OwnedFd) -> bool {
        let mut polled = [PollFd::new(wake_up, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())) == Ok(1)
    }

    #[test]
    fn it_is_readable_until_the_sum_is_taken() {
        let wake_up = open().expect("a descriptor");
        assert!(!is_readable(&wake_up) && take(&wake_up) == 0);
        let copy = wake_up.try_clone().expect("a descriptor");
        ring(&copy);
        add(&copy, 16).expect("room");
        assert!(is_readable(&wake_up));
        assert_eq!(take(&wake_up), 17);
        assert!(!is_readable(&wake_up));
    }

    #[test]
    #[cfg(not(native_linux))]
    fn a_failure_leaves_no_file() {
        const ALONE: &str = "FAIRLEAD_TEST_WITHOUT_DESCRIPTORS";
        let Some(folder) = std::env::var_os(ALONE) else {
            let folder = tempfile::tempdir().expect("a folder");
            let name = "wake_up::tests::a_failure_leaves_no_file";
            let status = std::process::Command::new(std::env::current_exe().expect("a path"))
                .args(["--exact", name])
                .envs([(ALONE, folder.path()), ("TMPDIR", folder.path())])
                .status();
            assert!(status.expect("a process").success());
            return;
        };
        let held: Vec<OwnedFd> = std::iter::from_fn(|| open().ok()).take(100_000).collect();
        assert!(!held.is_empty() && open().is_err());
        drop(held);
        assert_eq!(std::fs::read_dir(folder).expect("a folder").count(), 0);
    }

    #[test]
    fn it_may_be_rung_any_number_of_times() {
        let wake_up = open().expect("a descriptor");
        (0..100_000).for_each(|_| ring(&wake_up));
        assert!(is_readable(&wake_up) && take(&wake_up) > 0);
        assert!(!is_readable(&wake_up));
    }
}
