//! The frames that a client has not taken yet, in order. Frames for many clients are shared, and all waiting frames are
//! sent in as few system calls as possible.
//!
//! Memory is counted only while the server waits for a client: its own frames for this client; shared frames once, for
//! the first such client. Shared frames also count in the share of each client, which decides which client gives way.

use crate::clock::Millis;
use crate::limits::budget::{Budget, Kind, Share};
use crate::pubsub::WireForm;
use crate::spool::{Charge, ReadRate, Slowness, Spool};
use crate::transport::Transport;
use rustix::io::{self, Errno};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;

/// Frames per system call.
const BATCH: usize = 64;

/// Bytes that one client gets before others have their turn; the poller sends the rest.
const TURN_BYTES: usize = 1024 * 1024;

/// The capacity that an empty queue keeps.
const SPARE_PLACES: usize = 8;

/// Approximate memory of a frame, without its bytes.
const FRAME_BYTES: usize = 64;

/// Memory is counted in steps of this size, rounded down.
const STEP: usize = 4 * 1024;

/// A complete frame, chunk or piece of a stream.
#[derive(Debug)]
pub(crate) enum Frame {
    Own(Vec<u8>),
    Shared(Arc<WireForm>),
}

impl Frame {
    fn bytes(&self) -> &[u8] {
        match self {
            Frame::Own(bytes) => bytes,
            Frame::Shared(form) => form.bytes(),
        }
    }

    /// Memory that the frame takes for this client alone.
    fn own_memory(&self) -> usize {
        match self {
            Frame::Own(bytes) => FRAME_BYTES + bytes.capacity(),
            Frame::Shared(_) => FRAME_BYTES,
        }
    }

    fn shared_memory(&self) -> usize {
        match self {
            Frame::Own(_) => 0,
            Frame::Shared(form) => form.bytes().len(),
        }
    }
}

/// Unsent frames of a client that migrates.
#[derive(Clone, Debug)]
pub(crate) enum Unsent {
    /// Frames for this client alone, one after the other.
    Own(Vec<u8>),
    /// A frame that other clients have, too.
    Shared(Arc<WireForm>),
}

/// A shorter frame is copied when its client migrates.
const WORTH_SHARING: usize = 256;

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// The kernel has everything.
    Everything,
    /// The socket is full, or the turn is over.
    Part,
}

#[derive(Debug, Default)]
pub(crate) struct Frames {
    frames: VecDeque<Frame>,
    /// Bytes of the first frame that were sent.
    sent: usize,
    /// Another process has sent the beginning of the first frame.
    is_rest: bool,
    /// Unsent bytes.
    bytes: usize,
    /// The transport has taken bytes that the kernel does not have.
    has_rest: bool,
    /// Memory of all frames: for this client alone, and shared with others.
    own: usize,
    shared: usize,
    /// Number of frames at the end that are new: the shared ones among them may not be counted yet.
    uncounted: usize,
    held: Option<Held>,
    /// Bytes that the transport has taken since the client was last behind.
    progress: u64,
    read_rate: ReadRate,
}

/// Memory that is counted.
#[derive(Debug)]
struct Held {
    /// In the total of all responses.
    own: Charge,
    /// Own and shared memory, in the budget of the HTTP/2 connection or of the client.
    share: Share,
}

impl Frames {
    pub(crate) fn is_empty(&self) -> bool {
        self.frames.is_empty() && !self.has_rest
    }

    /// Frames that are not completely sent.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Bytes that are not sent.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, frame: Frame) {
        let length = frame.bytes().len();
        if length > 0 {
            self.add(&frame);
            self.uncounted += 1;
            self.frames.push_back(frame);
        }
    }

    fn add(&mut self, frame: &Frame) {
        self.bytes += frame.bytes().len();
        self.own += frame.own_memory();
        self.shared += frame.shared_memory();
    }

    /// Counts the waiting frames of a client that is behind. Returns true if they are more than before.
    pub(crate) fn count(&mut self, spool: &Arc<Spool>, budget: impl FnOnce() -> Arc<Budget>) -> bool {
        if self.frames.is_empty() {
            self.held = None;
            return false;
        }
        let new = self.uncounted.min(self.frames.len());
        for frame in self.frames.range(self.frames.len() - new..) {
            if let Frame::Shared(form) = frame {
                form.count_once(|| Box::new(spool.count_memory(form.bytes().len(), None)));
            }
        }
        self.uncounted = 0;
        let steps = |bytes: usize| (bytes / STEP * STEP) as u64;
        let (own, all) = (steps(self.own), steps(self.own + self.shared));
        match &mut self.held {
            None if all > 0 => {
                self.held = Some(Held {
                    own: spool.count_memory(own as usize, None),
                    share: budget().count(Kind::Responses, all),
                });
                true
            }
            Some(held) if held.share.amount() != all || held.own.bytes() != own => {
                let is_more = all > held.share.amount();
                held.own.set(own);
                held.share.set(all);
                is_more
            }
            _ => false,
        }
    }

    /// Slowness of the client; `None` if it takes everything at once.
    pub(crate) fn slowness(&self, now: Millis) -> Option<Slowness> {
        self.held.as_ref()?;
        self.read_rate.slowness(now, self.progress, self.bytes as u64)
    }

    /// Puts a frame before all others, none of which may have been begun.
    pub(crate) fn push_first(&mut self, frame: Frame) {
        let length = frame.bytes().len();
        if length > 0 {
            debug_assert_eq!(self.sent, 0);
            self.add(&frame);
            self.uncounted = self.frames.len() + 1;
            self.frames.push_front(frame);
        }
    }

    /// Drops every frame that was not begun; a begun frame must be completed.
    pub(crate) fn forget_whole_frames(&mut self) {
        self.frames.truncate(usize::from(self.is_begun()));
        let sum = |of: fn(&Frame) -> usize| self.frames.iter().map(of).sum::<usize>();
        self.bytes = sum(|frame| frame.bytes().len()) - self.sent;
        (self.own, self.shared) = (sum(Frame::own_memory), sum(Frame::shared_memory));
    }

    /// True if a part of the first frame was sent.
    fn is_begun(&self) -> bool {
        !self.frames.is_empty() && (self.sent > 0 || self.is_rest)
    }

    /// Puts the rest of a frame that another process has begun before all others.
    pub(crate) fn push_rest(&mut self, rest: Vec<u8>) {
        self.is_rest = !rest.is_empty();
        self.push_first(Frame::Own(rest));
    }

    /// The unsent frames, in order, after the rest of a frame for this client alone that was begun. If it is a shared frame, it is
    /// the first one, and this many of its bytes were sent.
    pub(crate) fn unsent(&self) -> (Vec<u8>, u64, Vec<Unsent>) {
        let mut frames = self.frames.iter().peekable();
        let (mut begun, mut sent) = (Vec::new(), 0);
        match frames.peek() {
            Some(Frame::Shared(form)) if self.is_begun() && form.bytes().len() >= WORTH_SHARING => {
                sent = self.sent as u64;
            }
            Some(first) if self.is_begun() => {
                begun = first.bytes()[self.sent..].to_vec();
                frames.next();
            }
            _ => {}
        }
        let mut unsent = Vec::new();
        for frame in frames {
            match (frame, unsent.last_mut()) {
                (Frame::Shared(form), _) if form.bytes().len() >= WORTH_SHARING => {
                    unsent.push(Unsent::Shared(Arc::clone(form)));
                }
                (frame, Some(Unsent::Own(bytes))) => bytes.extend_from_slice(frame.bytes()),
                (frame, _) => unsent.push(Unsent::Own(frame.bytes().to_vec())),
            }
        }
        (begun, sent, unsent)
    }

    /// Notes that another process has sent this many bytes of the first frame. Without effect if it is not that long.
    pub(crate) fn continue_at(&mut self, sent: u64) {
        let length = self.frames.front().map_or(0, |first| first.bytes().len());
        if sent > 0 && sent < length as u64 {
            self.sent = sent as usize;
            self.bytes -= self.sent;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Frames::default();
    }

    /// Gives the kernel as much as it takes without blocking. Adds the number of bytes to `taken`.
    pub(crate) fn flush(&mut self, transport: &dyn Transport, taken: &mut usize) -> io::Result<Flushed> {
        let flushed = self.flush_frames(transport, taken)?;
        if flushed == Flushed::Part {
            self.read_rate.note_full(Millis::now(), self.progress);
        } else if self.held.take().is_some() || self.progress > 0 {
            (self.progress, self.read_rate) = (0, ReadRate::default());
        }
        Ok(flushed)
    }

    fn flush_frames(&mut self, transport: &dyn Transport, taken: &mut usize) -> io::Result<Flushed> {
        let mut turn = 0;
        while !self.frames.is_empty() {
            match self.send(transport) {
                Ok(count) => {
                    turn += count;
                    *taken += count;
                    self.advance(count);
                }
                Err(Errno::AGAIN) => return Ok(Flushed::Part),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            if turn >= TURN_BYTES && !self.frames.is_empty() {
                return Ok(Flushed::Part);
            }
        }
        if self.frames.capacity() > SPARE_PLACES {
            self.frames = VecDeque::new();
        }
        self.has_rest = transport.send_rest() == Err(Errno::AGAIN);
        Ok(if self.has_rest {
            Flushed::Part
        } else {
            Flushed::Everything
        })
    }

    fn send(&self, transport: &dyn Transport) -> io::Result<usize> {
        if let [only] = self.frames.as_slices().0 {
            if self.frames.len() == 1 {
                return transport.send(&only.bytes()[self.sent..], false);
            }
        }
        let mut slices: [IoSlice<'_>; BATCH] = std::array::from_fn(|_| IoSlice::new(&[]));
        let mut count = 0;
        let mut from = self.sent;
        for (slice, frame) in slices.iter_mut().zip(&self.frames) {
            *slice = IoSlice::new(&frame.bytes()[std::mem::take(&mut from)..]);
            count += 1;
        }
        transport.send_pieces(&slices[..count])
    }

    fn advance(&mut self, count: usize) {
        self.bytes -= count;
        self.sent += count;
        self.progress += count as u64;
        while let Some(first) = self.frames.front() {
            let length = first.bytes().len();
            if self.sent < length {
                break;
            }
            self.sent -= length;
            self.is_rest = false;
            self.own -= first.own_memory();
            self.shared -= first.shared_memory();
            self.frames.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pubsub::Publication;
    use crate::transport::Socket;
    use rustix::net::SocketType;
    use std::io::Read;

    fn pair() -> (Socket, std::os::unix::net::UnixStream) {
        let (ours, theirs) = fairlead_system::sockets::pair(SocketType::STREAM, false).expect("a socket pair");
        (Socket::uncounted(ours), theirs.into())
    }

    #[test]
    fn frames_arrive_in_order_whatever_the_socket_takes_at_a_time() {
        let (ours, mut theirs) = pair();
        let mut frames = Frames::default();
        let mut expected = Vec::new();
        for number in 0..3000u32 {
            let bytes: Vec<u8> = number.to_le_bytes().repeat(1 + number as usize % 700);
            expected.extend_from_slice(&bytes);
            frames.push(if number % 2 == 0 {
                Frame::Own(bytes)
            } else {
                Frame::Shared(Arc::clone(Publication::new(*b"", bytes).encoded(0, <[u8]>::to_vec)))
            });
        }
        assert_eq!(frames.bytes(), expected.len());
        let (mut taken, mut received, mut space) = (0, Vec::new(), vec![0; 100_000]);
        while received.len() < expected.len() {
            frames.flush(&ours, &mut taken).expect("an open socket");
            assert_eq!(frames.bytes(), expected.len() - taken);
            let count = theirs.read(&mut space).expect("something was sent");
            received.extend_from_slice(&space[..count]);
        }
        assert!(frames.is_empty() && received == expected);
    }

    #[test]
    fn a_frame_that_was_begun_is_kept_when_the_others_are_dropped() {
        let (ours, mut theirs) = pair();
        let mut frames = Frames::default();
        frames.push(Frame::Own(vec![1; 10_000_000]));
        frames.push(Frame::Own(vec![2; 10]));
        let mut taken = 0;
        assert_eq!(frames.flush(&ours, &mut taken), Ok(Flushed::Part));
        frames.forget_whole_frames();
        frames.push(Frame::Own(vec![3; 4]));
        assert_eq!(frames.bytes(), 10_000_000 - taken + 4);
        let (mut received, mut space) = (Vec::new(), vec![0; 1 << 20]);
        while received.len() < 10_000_004 {
            let count = theirs.read(&mut space).expect("something was sent");
            received.extend_from_slice(&space[..count]);
            frames.flush(&ours, &mut taken).expect("an open socket");
        }
        assert_eq!(received[9_999_999..], [1, 3, 3, 3, 3]);
    }

    #[test]
    fn frames_of_which_nothing_was_sent_are_dropped() {
        let mut frames = Frames::default();
        frames.push(Frame::Own(vec![1; 10]));
        frames.push(Frame::Own(Vec::new()));
        assert_eq!(frames.len(), 1);
        frames.forget_whole_frames();
        assert!(frames.is_empty() && frames.bytes() == 0);
    }
}
