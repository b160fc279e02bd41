//! The messages on the publish socket. Numbers are big-endian.
//!
//! ```text
//! request:  length of the rest (4 bytes) | flags (1) | length of the channel (4) | channel | message
//! reply:    outcome (1)                  | number (4)
//! ```
//! A process sends a request and waits for the reply. lib/fairlead/realtime/pub_sub/server_socket.rb is the other side.

/// Longest rest of a request.
pub(super) const LONGEST: usize = 16 * 1024 * 1024;

/// Bytes before the channel.
const HEAD: usize = 9;

/// The flag of a message that is also for the history.
const HISTORY: u8 = 1;

/// The flags that this version knows.
const KNOWN_FLAGS: u8 = HISTORY;

/// The beginning of a buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    /// A request, and its length in the buffer.
    Request(Request<'a>, usize),
    /// More bytes are needed.
    Incomplete,
    /// These bytes are no request: the reason.
    Invalid(&'static str),
}

/// A message to publish.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    flags: u8,
    /// Its channel.
    pub channel: &'a [u8],
    /// The message.
    pub message: &'a [u8],
}

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All workers have it.
    Taken,
    /// This number of workers did not take it in time.
    NotTaken(u32),
    /// It has flags that this version does not know. Nothing was published.
    UnknownFlags,
}

impl Frame<'_> {
    /// Reads the beginning of a buffer.
    pub(super) fn read(bytes: &[u8]) -> Frame<'_> {
        let Some(length) = number(bytes, 0) else {
            return Frame::Incomplete;
        };
        if length > LONGEST {
            return Frame::Invalid("its message is longer than 16 MiB");
        }
        if length < HEAD - 4 {
            return Frame::Invalid("it does not speak the protocol");
        }
        let (Some(flags), Some(channel)) = (bytes.get(4), number(bytes, 5)) else {
            return Frame::Incomplete;
        };
        if channel > length + 4 - HEAD {
            return Frame::Invalid("it does not speak the protocol");
        }
        match bytes.get(HEAD..4 + length) {
            Some(rest) => {
                let (channel, message) = rest.split_at(channel);
                let flags = *flags;
                Frame::Request(
                    Request {
                        flags,
                        channel,
                        message,
                    },
                    4 + length,
                )
            }
            None => Frame::Incomplete,
        }
    }
}

impl Request<'_> {
    /// True if the message is also for the history.
    pub fn is_for_history(&self) -> bool {
        self.flags & HISTORY != 0
    }

    /// True if this version can do what the flags ask for.
    pub(super) fn is_known(&self) -> bool {
        self.flags & !KNOWN_FLAGS == 0
    }
}

impl Outcome {
    /// `undelivered`: the number of workers that did not take the message.
    pub(super) fn of(undelivered: usize) -> Outcome {
        match u32::try_from(undelivered).unwrap_or(u32::MAX) {
            0 => Outcome::Taken,
            count => Outcome::NotTaken(count),
        }
    }

    /// The reply.
    pub(super) fn reply(self) -> [u8; 5] {
        let (outcome, number) = match self {
            Outcome::Taken => (0, 0),
            Outcome::NotTaken(count) => (1, count),
            Outcome::UnknownFlags => (2, u32::from(KNOWN_FLAGS)),
        };
        let [a, b, c, d] = number.to_be_bytes();
        [outcome, a, b, c, d]
    }
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(bytes)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(flags: u8, channel: &[u8], message: &[u8]) -> Vec<u8> {
        let length = u32::try_from(5 + channel.len() + message.len()).expect("a short one");
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.push(flags);
        bytes.extend(u32::try_from(channel.len()).expect("a short one").to_be_bytes());
        bytes.extend([channel, message].concat());
        bytes
    }

    #[test]
    fn a_request_is_complete_with_its_last_byte() {
        let mut bytes = request(0, b"news", b"hello");
        for end in 0..bytes.len() {
            assert_eq!(Frame::read(&bytes[..end]), Frame::Incomplete, "{end}");
        }
        let length = bytes.len();
        bytes.extend(b"next");
        let Frame::Request(request, end) = Frame::read(&bytes) else {
            panic!("it is complete");
        };
        assert_eq!(
            (request.channel, request.message, end),
            (&b"news"[..], &b"hello"[..], length)
        );
        assert!(request.is_known());
    }

    #[test]
    fn channel_and_message_may_be_empty() {
        let bytes = request(0, b"", b"");
        assert!(matches!(Frame::read(&bytes), Frame::Request(request, 9) if request.channel.is_empty()));
    }

    #[test]
    fn lengths_that_contradict_each_other_are_refused() {
        let mut long_channel = request(0, b"news", b"");
        long_channel[8] = 5;
        let too_long = u32::try_from(LONGEST + 1).expect("it fits").to_be_bytes();
        for bytes in [&long_channel[..], &[0, 0, 0, 4], &too_long, b"GET / HTTP/1.1\r\n"] {
            assert!(matches!(Frame::read(bytes), Frame::Invalid(_)), "{bytes:?}");
        }
    }

    #[test]
    fn a_request_with_a_new_flag_is_not_known() {
        let bytes = request(2, b"news", b"");
        assert!(matches!(Frame::read(&bytes), Frame::Request(request, _) if !request.is_known()));
        assert_eq!(Outcome::UnknownFlags.reply(), [2, 0, 0, 0, 1]);
    }

    #[test]
    fn a_reply_counts_the_workers() {
        assert_eq!(Outcome::of(0).reply(), [0, 0, 0, 0, 0]);
        assert_eq!(Outcome::of(258).reply(), [1, 0, 0, 1, 2]);
    }
}
