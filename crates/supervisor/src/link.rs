//! The connection between the supervisor and one of its processes: a socket pair that preserves message boundaries.
//!
//! A message has a kind, fields (bytes without NUL) and descriptors. When a process ends, the other end reads end of
//! file. `lib/fairlead/process/link.rb` is the other side.

use fairlead_system::messages::{self, MOST_DESCRIPTORS};
use rustix::net::{shutdown, Shutdown};
use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Most descriptors that are sent in one message.
pub const PART: usize = 200;

/// Longest message, in bytes.
const LONGEST: usize = 64 * 1024;

/// Longest field that is sent, in bytes; longer ones are truncated.
const LONGEST_FIELD: usize = 4000;

const SEPARATOR: u8 = 0;

thread_local! {
    /// Buffer for the text of one message.
    static SPACE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A received message.
#[derive(Debug)]
pub struct Message {
    /// The first word.
    pub kind: String,
    /// The fields after it.
    pub fields: Vec<Vec<u8>>,
    /// Descriptors of this process, closed on exec.
    pub descriptors: Vec<OwnedFd>,
}

impl Message {
    /// The field as text, invalid bytes replaced; empty if it is missing.
    pub fn text(&self, index: usize) -> String {
        let field = self.fields.get(index).map(Vec::as_slice);
        String::from_utf8_lossy(field.unwrap_or_default()).into_owned()
    }

    /// The field as a number.
    pub fn number<T: std::str::FromStr>(&self, index: usize) -> Option<T> {
        self.text(index).parse().ok()
    }
}

/// The result of reading.
#[derive(Debug)]
pub enum Received {
    /// A message.
    Message(Message),
    /// No message is available now.
    Nothing,
    /// The other end is closed.
    Gone,
}

/// One end.
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
}

impl Link {
    /// A new link: its two ends, closed on exec.
    ///
    /// # Errors
    /// If descriptors or memory are short.
    pub fn pair() -> rustix::io::Result<(Link, Link)> {
        let (ours, theirs) = messages::pair()?;
        Ok((Link::new(ours), Link::new(theirs)))
    }

    /// The end with this descriptor: one of [`messages::pair`].
    pub fn new(socket: OwnedFd) -> Link {
        Link { socket }
    }

    /// The descriptor, to give it to another process.
    pub fn into_socket(self) -> OwnedFd {
        self.socket
    }

    /// Another descriptor of the same end; `None` if descriptors are short.
    pub fn copy(&self) -> Option<Link> {
        self.socket.try_clone().ok().map(Link::new)
    }

    /// Sends a message. Returns false if the other end is closed, or accepts no more messages.
    pub fn send(&self, kind: &str, fields: &[&[u8]], descriptors: &[BorrowedFd<'_>]) -> bool {
        let mut text = kind.as_bytes().to_vec();
        for field in fields {
            text.push(SEPARATOR);
            let field = &field[..field.len().min(LONGEST_FIELD)];
            text.extend(field.iter().filter(|byte| **byte != SEPARATOR));
        }
        if text.len() > LONGEST || descriptors.len() > MOST_DESCRIPTORS {
            return false;
        }
        messages::send(&self.socket, &text, descriptors)
    }

    /// Ends the link for both sides, even if other processes have copies of its descriptors.
    pub fn shut_down(&self) {
        let _ = shutdown(&self.socket, Shutdown::Both);
    }

    /// Reads one message, without waiting.
    pub fn receive(&self) -> Received {
        SPACE.with_borrow_mut(|space| self.receive_into(space))
    }

    fn receive_into(&self, text: &mut Vec<u8>) -> Received {
        text.resize(LONGEST, 0);
        match messages::receive(&self.socket, text) {
            messages::Received::Message(length, descriptors) => Received::Message(parse(&text[..length], descriptors)),
            messages::Received::Nothing => Received::Nothing,
            messages::Received::Gone => Received::Gone,
        }
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn parse(text: &[u8], descriptors: Vec<OwnedFd>) -> Message {
    let mut words = text.split(|byte| *byte == SEPARATOR);
    let kind = words.next().unwrap_or_default();
    Message {
        kind: String::from_utf8_lossy(kind).into_owned(),
        fields: words.map(<[u8]>::to_vec).collect(),
        descriptors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    fn message(received: Received) -> Message {
        match received {
            Received::Message(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_stay_apart_with_their_fields_and_descriptors() {
        let (ours, theirs) = Link::pair().expect("a pair");
        let (reader, writer) = pipe().expect("a pipe");
        assert!(ours.send("fork", &[b"1", b"", b"a\0b"], &[writer.as_fd()]));
        assert!(ours.send("end", &[], &[]));
        let first = message(theirs.receive());
        assert_eq!(
            (first.kind.as_str(), first.fields),
            ("fork", vec![b"1".to_vec(), vec![], b"ab".to_vec()])
        );
        drop(writer);
        rustix::io::write(&first.descriptors[0], b"x").expect("the descriptor is open");
        drop(first.descriptors);
        let mut byte = [0; 2];
        assert_eq!(rustix::io::read(&reader, &mut byte), Ok(1));
        assert_eq!(message(theirs.receive()).kind, "end");
        assert!(matches!(theirs.receive(), Received::Nothing));
    }

    #[test]
    fn the_end_of_the_other_side_is_read_after_its_messages() {
        let (ours, theirs) = Link::pair().expect("a pair");
        ours.send("failed", &[b"no file"], &[]);
        drop(ours);
        assert_eq!(message(theirs.receive()).text(0), "no file");
        assert!(matches!(theirs.receive(), Received::Gone));
        assert!(!theirs.send("end", &[], &[]));
    }

    #[test]
    fn the_last_words_of_a_side_that_has_not_read_everything_are_heard() {
        let (ours, theirs) = Link::pair().expect("a pair");
        ours.send("kept_end", &[], &[]);
        theirs.send("failed", &[b"no file"], &[]);
        drop(theirs);
        assert_eq!(message(ours.receive()).text(0), "no file");
        assert!(matches!(ours.receive(), Received::Gone));
    }

    #[test]
    fn a_full_link_refuses_instead_of_waiting() {
        let (ours, _theirs) = Link::pair().expect("a pair");
        let sent = (0..10_000)
            .take_while(|_| ours.send("alive", &[&[b'x'; 1000]], &[]))
            .count();
        assert!((1..10_000).contains(&sent), "{sent}");
    }
}
