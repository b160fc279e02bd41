//! Poller of the operating system, level-triggered. Any thread may change an interest while one waits.
//!
//! Linux: epoll. Elsewhere: the crate `polling`, which uses kqueue on macOS and FreeBSD. kqueue cannot report a hang-up alone, so
//! [`Interest::HangUp`] reports nothing there.

pub use system::{Event, EventBuffer, Poller};

/// Events to watch a descriptor for. A hang-up is reported, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Input, or its end.
    Read,
    /// Room for output.
    Write,
    /// Both.
    ReadAndWrite,
    /// Only a hang-up, once, where the system can report it alone.
    HangUp,
}

#[cfg(native_linux)]
mod system {
    use super::Interest;
    use rustix::event::epoll::{self, EventData, EventFlags};
    use rustix::event::Timespec;
    use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
    use rustix::io::{Errno, Result};
    use std::mem::MaybeUninit;
    use std::time::Duration;

    /// See the head of this file.
    #[derive(Debug)]
    pub struct Poller(OwnedFd);

    /// Space for the events of one wait.
    pub struct EventBuffer<const BATCH: usize>([MaybeUninit<epoll::Event>; BATCH]);

    /// An event of a descriptor.
    #[derive(Clone, Copy)]
    pub struct Event(epoll::Event);

    impl<const BATCH: usize> EventBuffer<BATCH> {
        /// Empty.
        #[inline]
        pub const fn new() -> EventBuffer<BATCH> {
            EventBuffer([const { MaybeUninit::uninit() }; BATCH])
        }
    }

    impl<const BATCH: usize> Default for EventBuffer<BATCH> {
        fn default() -> EventBuffer<BATCH> {
            EventBuffer::new()
        }
    }

    impl Event {
        /// The number that the descriptor was added with.
        #[inline]
        pub fn token(self) -> u64 {
            self.0.data.u64()
        }

        /// Readable, or at its end.
        #[inline]
        pub fn readable(self) -> bool {
            self.flags().contains(EventFlags::IN) || self.ended()
        }

        /// Writable. A failed descriptor need not be.
        #[inline]
        pub fn writable(self) -> bool {
            self.flags().contains(EventFlags::OUT)
        }

        /// Hung up, or failed.
        #[inline]
        pub fn ended(self) -> bool {
            self.flags().intersects(EventFlags::HUP | EventFlags::ERR)
        }

        fn flags(self) -> EventFlags {
            self.0.flags
        }
    }

    impl Interest {
        #[inline]
        fn flags(self) -> EventFlags {
            match self {
                Interest::Read => EventFlags::IN,
                Interest::Write => EventFlags::OUT,
                Interest::ReadAndWrite => EventFlags::IN | EventFlags::OUT,
                Interest::HangUp => EventFlags::ONESHOT, // a hang-up cannot be disabled
            }
        }
    }

    impl Poller {
        /// Watches nothing yet.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn new() -> Result<Poller> {
            epoll::create(epoll::CreateFlags::CLOEXEC).map(Poller)
        }

        /// Waits for events, for at most `timeout` (`None`: without limit). A signal ends the wait.
        ///
        /// # Errors
        /// If the system has no memory.
        #[inline]
        pub fn wait<'a, const BATCH: usize>(
            &self,
            space: &'a mut EventBuffer<BATCH>,
            timeout: Option<Duration>,
        ) -> Result<impl Iterator<Item = Event> + use<'a, BATCH>> {
            let timeout = timeout.map(|timeout| Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: timeout.subsec_nanos().into(),
            });
            let events: &[epoll::Event] = match epoll::wait(&self.0, &mut space.0, timeout.as_ref()) {
                Ok((events, _)) => events,
                Err(Errno::INTR) => &[],
                Err(error) => return Err(error),
            };
            Ok(events.iter().copied().map(Event))
        }

        /// Watches a descriptor, until it is removed, or closed by all processes.
        ///
        /// # Errors
        /// EXIST if it is watched already.
        pub fn add(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
            epoll::add(&self.0, descriptor, EventData::new_u64(token), interest.flags())
        }

        /// Watches a descriptor for input that several processes wait for: the kernel wakes as few of them as possible.
        ///
        /// # Errors
        /// EXIST if it is watched already.
        pub fn add_shared(&self, descriptor: impl AsFd, token: u64) -> Result<()> {
            let flags = EventFlags::IN | EventFlags::EXCLUSIVE;
            epoll::add(&self.0, descriptor, EventData::new_u64(token), flags)
        }

        /// Changes the interest in a descriptor.
        ///
        /// # Errors
        /// If it is not watched.
        #[inline]
        pub fn change(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
            epoll::modify(&self.0, descriptor, EventData::new_u64(token), interest.flags())
        }

        /// Stops watching a descriptor. Required before closing a descriptor that another process has, too.
        pub fn remove(&self, descriptor: impl AsFd) {
            // The only possible error is that it is not watched.
            let _ = epoll::delete(&self.0, descriptor);
        }
    }

    /// Readable while there are events.
    impl AsFd for Poller {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(not(native_linux))]
mod system {
    use super::Interest;
    use polling::{Events, PollMode};
    use rustix::fd::{AsFd, AsRawFd, BorrowedFd};
    use rustix::io::{Errno, Result};
    use std::num::NonZeroUsize;
    use std::time::Duration;

    /// See the head of this file.
    #[derive(Debug)]
    pub struct Poller(polling::Poller);

    /// Space for the events of one wait.
    pub struct EventBuffer<const BATCH: usize>(Events);

    /// An event of a descriptor.
    #[derive(Clone, Copy, Debug)]
    pub struct Event(polling::Event);

    impl<const BATCH: usize> EventBuffer<BATCH> {
        /// Empty.
        pub fn new() -> EventBuffer<BATCH> {
            EventBuffer(Events::with_capacity(
                NonZeroUsize::new(BATCH).unwrap_or(NonZeroUsize::MIN),
            ))
        }
    }

    impl<const BATCH: usize> Default for EventBuffer<BATCH> {
        fn default() -> EventBuffer<BATCH> {
            EventBuffer::new()
        }
    }

    impl Event {
        /// The number that the descriptor was added with.
        pub fn token(self) -> u64 {
            self.0.key as u64
        }

        /// Readable, or at its end.
        pub fn readable(self) -> bool {
            self.0.readable || self.ended()
        }

        /// Writable. A failed descriptor need not be.
        pub fn writable(self) -> bool {
            self.0.writable
        }

        /// Hung up, or failed. Not every system reports it.
        pub fn ended(self) -> bool {
            self.0.is_interrupt() || self.0.is_err().unwrap_or(false)
        }
    }

    impl Interest {
        fn event(self, token: u64) -> (polling::Event, PollMode) {
            let key = token as usize;
            match self {
                Interest::Read => (polling::Event::readable(key), PollMode::Level),
                Interest::Write => (polling::Event::writable(key), PollMode::Level),
                Interest::ReadAndWrite => (polling::Event::all(key), PollMode::Level),
                Interest::HangUp => (polling::Event::none(key), PollMode::Oneshot),
            }
        }
    }

    fn errno(error: std::io::Error) -> Errno {
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    }

    impl Poller {
        /// Watches nothing yet.
        ///
        /// # Errors
        /// If descriptors are short.
        pub fn new() -> Result<Poller> {
            polling::Poller::new().map(Poller).map_err(errno)
        }

        /// Waits for events, for at most `timeout` (`None`: without limit).
        ///
        /// # Errors
        /// If the system has no memory.
        pub fn wait<'a, const BATCH: usize>(
            &self,
            space: &'a mut EventBuffer<BATCH>,
            timeout: Option<Duration>,
        ) -> Result<impl Iterator<Item = Event> + use<'a, BATCH>> {
            space.0.clear();
            self.0.wait(&mut space.0, timeout).map_err(errno)?;
            Ok(merged(space.0.iter().collect()).into_iter().map(Event))
        }

        /// Watches a descriptor, until it is removed, or closed by all processes.
        ///
        /// # Errors
        /// If the system cannot watch it.
        pub fn add(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
            let (event, mode) = interest.event(token);
            // SAFETY: the number is of an open descriptor. If that is closed, the system watches it no longer; the poller only
            // keeps its number, and never uses it by itself.
            match unsafe { self.0.add_with_mode(descriptor.as_fd().as_raw_fd(), event, mode) } {
                // It is watched, or an earlier descriptor with this number was.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    self.0.modify_with_mode(descriptor.as_fd(), event, mode).map_err(errno)
                }
                result => result.map_err(errno),
            }
        }

        /// Watches a descriptor for input that several processes wait for: all of them wake up.
        ///
        /// # Errors
        /// If the system cannot watch it.
        pub fn add_shared(&self, descriptor: impl AsFd, token: u64) -> Result<()> {
            self.add(descriptor, token, Interest::Read)
        }

        /// Changes the interest in a descriptor.
        ///
        /// # Errors
        /// If it is not watched.
        pub fn change(&self, descriptor: impl AsFd, token: u64, interest: Interest) -> Result<()> {
            let (event, mode) = interest.event(token);
            self.0.modify_with_mode(descriptor.as_fd(), event, mode).map_err(errno)
        }

        /// Stops watching a descriptor. Required before closing a descriptor that another process has, too.
        pub fn remove(&self, descriptor: impl AsFd) {
            // The only possible error is that it is not watched.
            let _ = self.0.delete(descriptor.as_fd());
        }
    }

    /// kqueue reports input and room for output separately: makes one event of both.
    fn merged(mut events: Vec<polling::Event>) -> Vec<polling::Event> {
        events.sort_by_key(|event| event.key);
        events.dedup_by(|second, first| {
            let is_same = second.key == first.key;
            if is_same {
                first.readable |= second.readable;
                first.writable |= second.writable;
            }
            is_same
        });
        events
    }

    /// Readable while there are events.
    impl AsFd for Poller {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake_up;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn seen(poller: &Poller, timeout: Duration) -> Vec<(u64, bool, bool)> {
        let mut space = EventBuffer::<8>::new();
        let events = poller.wait(&mut space, Some(timeout)).expect("a wait");
        events
            .map(|event| (event.token(), event.readable(), event.writable()))
            .collect()
    }

    #[test]
    fn a_descriptor_is_reported_while_it_is_ready_and_once_by_one_event() {
        let (poller, wake_up) = (Poller::new().expect("a poller"), wake_up::open().expect("a descriptor"));
        let (socket, _peer) = UnixStream::pair().expect("sockets");
        poller.add(&wake_up, 1, Interest::Read).expect("it is watched");
        assert_eq!(seen(&poller, Duration::ZERO), []);
        wake_up::ring(&wake_up);
        for _ in 0..2 {
            assert_eq!(seen(&poller, Duration::from_secs(10)), [(1, true, false)]);
        }
        wake_up::take(&wake_up);
        poller.add(&socket, 2, Interest::ReadAndWrite).expect("it is watched");
        assert_eq!(seen(&poller, Duration::from_secs(10)), [(2, false, true)]);
        poller.change(&socket, 2, Interest::HangUp).expect("it is watched");
        assert_eq!(seen(&poller, Duration::ZERO), []);
    }

    #[test]
    fn a_descriptor_with_the_number_of_a_closed_one_is_watched() {
        let poller = Poller::new().expect("a poller");
        for token in 0..3 {
            let wake_up = wake_up::open().expect("a descriptor");
            poller.add(&wake_up, token, Interest::Read).expect("it is watched");
            wake_up::ring(&wake_up);
            assert_eq!(seen(&poller, Duration::from_secs(10)), [(token, true, false)]);
        }
    }
}
