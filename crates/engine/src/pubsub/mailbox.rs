//! The mailbox of one worker: a socket pair. The kernel keeps its queue, so the contents do not belong to a process
//! that may die. Any process puts envelopes in; only the worker takes them out.

use super::envelope::{announced, announcement, open, Envelope, HEADER, INLINE_BYTES, WAKE};
use super::publication::Publication;
use fairlead_system::datagrams;
use fairlead_system::sockets::{received, RECEIVE_DESCRIPTORS, SEND};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{retry_on_intr, Errno};
use rustix::net::{
    recvmsg, sendmsg, RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::Arc;

/// Most bytes of long envelopes that may wait. They are in files, which the kernel does not count.
const MOST_FILE_BYTES: i64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Mailbox {
    sender: OwnedFd,
    receiver: OwnedFd,
}

/// The result of an attempt to put an envelope in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    Done,
    /// There is no room; the socket becomes writable when there is.
    Full,
    /// The system is short of descriptors or memory, or too many bytes wait in files. Try again a little later.
    Short,
    Failed,
}

/// The result of taking an envelope out.
#[derive(Debug)]
pub(super) enum TakenMail {
    Mail(Arc<Publication>),
    /// The mailbox of the worker with this number; `None` if its descriptors could not be received.
    Announcement(usize, Option<Mailbox>),
    /// There is something to read in the history.
    Wake,
    /// An envelope with a file that could not be received or read.
    Spoiled,
    Nothing,
}

/// The buffer for a datagram.
pub(super) type DatagramBuffer = [u8; HEADER + INLINE_BYTES];

pub(super) fn space() -> Box<DatagramBuffer> {
    Box::new([0; HEADER + INLINE_BYTES])
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Mailbox> {
        let (sender, receiver) = datagrams::queue()?;
        Ok(Mailbox { sender, receiver })
    }

    /// Makes a mailbox from the ends of a socket pair, for senders and for the receiver.
    pub(super) fn adopt([sender, receiver]: [OwnedFd; 2]) -> Mailbox {
        Mailbox { sender, receiver }
    }

    /// The copy in a forked process.
    #[cfg(test)]
    pub(super) fn copy(&self) -> Mailbox {
        Mailbox {
            sender: self.sender.try_clone().expect("a descriptor"),
            receiver: self.receiver.try_clone().expect("a descriptor"),
        }
    }

    pub(super) fn sender(&self) -> BorrowedFd<'_> {
        self.sender.as_fd()
    }

    pub(super) fn receiver(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// Puts an envelope in, if there is room. `file_bytes` counts the bytes that wait in files.
    pub(super) fn put(&self, envelope: &mut Envelope<'_>, file_bytes: &AtomicI64) -> Put {
        if envelope.is_inline() {
            match self.send(envelope) {
                // The kernel's buffer is so small that not even a short envelope fits.
                Err(Errno::MSGSIZE) => {}
                result => return Put::from(result),
            }
        }
        // A publisher may die between counting and sending, so the count alone never rejects an envelope.
        let bytes = i64::try_from(envelope.bytes()).unwrap_or(i64::MAX / 2);
        let waiting = file_bytes.fetch_add(bytes, SeqCst);
        let is_over = waiting > 0 && waiting + bytes > MOST_FILE_BYTES && !self.is_empty();
        let put = if is_over || envelope.write_file().is_err() {
            Put::Short
        } else {
            Put::from(self.send(envelope))
        };
        if put != Put::Done {
            file_bytes.fetch_sub(bytes, SeqCst);
        }
        put
    }

    /// Sends the mailbox of worker number `slot` to the worker of this mailbox.
    pub(super) fn introduce(&self, slot: usize, mailbox: &Mailbox) -> Put {
        let datagram = announcement(slot);
        let descriptors = [mailbox.sender(), mailbox.receiver()];
        Put::from(self.send_datagram(&[IoSlice::new(&datagram)], &descriptors))
    }

    /// Wakes the dispatcher of this mailbox.
    pub(super) fn rouse(&self) -> Put {
        Put::from(self.send_datagram(&[IoSlice::new(&WAKE)], &[]))
    }

    fn send(&self, envelope: &Envelope<'_>) -> rustix::io::Result<usize> {
        let file = envelope.file();
        self.send_datagram(&envelope.datagram(), file.as_slice())
    }

    fn send_datagram(&self, parts: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> rustix::io::Result<usize> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(descriptors));
        }
        let flags = SEND;
        retry_on_intr(|| sendmsg(&self.sender, parts, &mut control, flags))
    }

    /// Takes the oldest envelope out.
    pub(super) fn take(&self, space: &mut DatagramBuffer, file_bytes: &AtomicI64) -> TakenMail {
        let Some((length, [file, other])) = self.receive(space) else {
            if file_bytes.load(Relaxed) != 0 {
                file_bytes.store(0, SeqCst);
            }
            return TakenMail::Nothing;
        };
        let datagram = space.get(..length).unwrap_or_default();
        if datagram == WAKE {
            return TakenMail::Wake;
        }
        if let Some(slot) = announced(datagram) {
            let mailbox = file.zip(other).map(|(sender, receiver)| Mailbox { sender, receiver });
            return TakenMail::Announcement(slot, mailbox);
        }
        let is_long = file.is_some();
        let Some(publication) = open(datagram, file) else {
            return TakenMail::Spoiled;
        };
        if is_long {
            let bytes = publication.channel.len() + publication.message.len();
            file_bytes.fetch_sub(bytes as i64, SeqCst);
        }
        TakenMail::Mail(Arc::new(publication))
    }

    /// Drops everything in it.
    pub(super) fn clear(&self, space: &mut DatagramBuffer, file_bytes: &AtomicI64) {
        while self.receive(space).is_some() {}
        file_bytes.store(0, SeqCst);
    }

    fn receive(&self, space: &mut DatagramBuffer) -> Option<(usize, [Option<OwnedFd>; 2])> {
        let mut control_space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut control_space);
        let flags = RECEIVE_DESCRIPTORS;
        let taken = retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(space)];
            recvmsg(&self.receiver, &mut parts, &mut control, flags)
        });
        let length = taken.ok()?.bytes;
        let descriptors = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => {
                let mut fds = fds.map(received);
                Some([fds.next(), fds.next()])
            }
            _ => None,
        });
        Some((length, descriptors.unwrap_or_default()))
    }

    fn is_empty(&self) -> bool {
        let mut fds = [PollFd::new(&self.receiver, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())) == Ok(0)
    }
}

impl From<rustix::io::Result<usize>> for Put {
    fn from(result: rustix::io::Result<usize>) -> Put {
        match result {
            Ok(_) => Put::Done,
            Err(Errno::AGAIN) => Put::Full,
            // An unprivileged user may have no more descriptors in flight than one process may open.
            Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => Put::Short,
            Err(_) => Put::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::publication_id::PublicationId;
    use rustix::net::SendFlags;

    fn take(mailbox: &Mailbox, file_bytes: &AtomicI64) -> TakenMail {
        mailbox.take(&mut space(), file_bytes)
    }

    #[test]
    fn an_envelope_too_long_for_the_buffer_of_the_socket_goes_into_a_file() {
        let (mailbox, file_bytes) = (Mailbox::new().expect("a mailbox"), AtomicI64::new(0));
        rustix::net::sockopt::set_socket_send_buffer_size(&mailbox.sender, 0).expect("as little as there can be");
        let message = [7; INLINE_BYTES / 2];
        let mut envelope = Envelope::new(PublicationId::of(1, 1), b"news", &message);
        assert!(envelope.is_inline());
        assert_eq!(mailbox.put(&mut envelope, &file_bytes), Put::Done);
        assert_eq!(file_bytes.load(SeqCst), 4 + message.len() as i64);
        let taken = take(&mailbox, &file_bytes);
        assert!(
            matches!(&taken, TakenMail::Mail(mail) if *mail.message == message),
            "{taken:?}"
        );
        assert_eq!(file_bytes.load(SeqCst), 0);
    }

    #[test]
    fn an_envelope_whose_file_is_missing_is_spoiled_and_the_next_is_not() {
        let (mailbox, file_bytes) = (Mailbox::new().expect("a mailbox"), AtomicI64::new(0));
        // A message of one byte, without it.
        let mut long = [0; HEADER];
        (long[8], long[17]) = (1, 1);
        for datagram in [&long[..], b"short"] {
            rustix::net::send(&mailbox.sender, datagram, SendFlags::empty()).expect("room");
        }
        assert_eq!(
            mailbox.put(&mut Envelope::new(PublicationId::of(1, 1), b"news", b""), &file_bytes),
            Put::Done
        );
        for _ in 0..2 {
            assert!(matches!(take(&mailbox, &file_bytes), TakenMail::Spoiled));
        }
        assert!(matches!(take(&mailbox, &file_bytes), TakenMail::Mail(mail) if mail.message.is_empty()));
        assert!(matches!(take(&mailbox, &file_bytes), TakenMail::Nothing));
    }

    #[test]
    fn a_wrong_count_of_bytes_in_files_keeps_nothing_out() {
        let (mailbox, file_bytes) = (Mailbox::new().expect("a mailbox"), AtomicI64::new(MOST_FILE_BYTES));
        let message = [7; 2 * INLINE_BYTES];
        let mut envelope = Envelope::new(PublicationId::of(1, 1), b"news", &message);
        assert_eq!(mailbox.put(&mut envelope, &file_bytes), Put::Done);
        assert_eq!(mailbox.put(&mut envelope, &file_bytes), Put::Short);
        assert!(matches!(take(&mailbox, &file_bytes), TakenMail::Mail(_)));
        assert!(matches!(take(&mailbox, &file_bytes), TakenMail::Nothing));
        assert_eq!(file_bytes.load(SeqCst), 0);
    }
}
