//! Connects `h2` to a transport: reads a turn's worth, writes as much as the transport takes, and counts frames both
//! ways.
//!
//! `h2` does I/O through tokio's traits, but there is no runtime. I/O that is not possible now is `Pending`, and the
//! reactor polls again when the socket is ready.

use super::unsent::Unsent;
use crate::clock::{Millis, Nanos};
use crate::sync::Mutex;
use crate::transport::{Link, Shutdown, READ_TURN, SCRATCH_BYTES};
use fairlead_wire::http2::{frame_type, Flood, FrameMeter, PREFACE};
use rustix::io::Errno;
use std::cell::RefCell;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

thread_local! {
    /// Space to receive into: the buffer of `h2` is not initialized.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Bytes that are received before the resulting output of `h2` is sent and counted.
const STEP_BYTES: usize = 16 * 1024;

/// The longest time that a turn of receiving may take, so that heads that are expensive to read do not delay other
/// peers longer.
const TURN_TIME: Duration = Duration::from_micros(250);

/// DATA frames shorter than this take more memory in `h2` than they have bytes. A turn ends after so many of them, so
/// that they can be taken out of `h2` ([`PipeState::take_small`]).
const SMALL_FRAME: usize = 1_024;
const SMALL_FRAMES_OF_TURN: usize = 1_000;

/// The transport that `h2` owns; the HTTP/2 connection keeps the other handle.
pub(super) struct Pipe(pub(super) Arc<PipeState>);

/// The state of a pipe. It is used while the HTTP/2 connection is locked, so its own lock is hardly ever contended.
pub(super) struct PipeState {
    transport: Link,
    /// Bytes of responses that were taken and not sent.
    pub(super) unsent: Unsent,
    inner: Mutex<Inner>,
}

struct Inner {
    /// Bytes that were received before the HTTP/2 connection began, and how many of them are read.
    ahead: Vec<u8>,
    read: usize,
    /// Bytes that may still be received in this turn, and before it is time to send.
    budget: usize,
    step: usize,
    /// The time when the turn ends, even if little was received.
    until: Nanos,
    /// The time since when the transport has not taken everything.
    blocked: Option<Millis>,
    has_ended: bool,
    incoming: FrameMeter,
    outgoing: FrameMeter,
    flood: Option<Flood>,
    /// The peer has reset a stream since the last call of [`PipeState::take_has_reset`].
    has_reset: bool,
    /// The streams of the small DATA frames since the last call of [`PipeState::take_small`], one entry for each frame.
    small: Vec<u32>,
    epoch: Millis,
}

impl PipeState {
    pub(super) fn new(transport: Link, ahead: Vec<u8>, now: Millis) -> Arc<PipeState> {
        let inner = Inner {
            ahead,
            read: 0,
            budget: 0,
            step: 0,
            until: Nanos::default(),
            blocked: None,
            has_ended: false,
            incoming: FrameMeter::after(PREFACE.len()),
            outgoing: FrameMeter::default(),
            flood: None,
            has_reset: false,
            small: Vec::new(),
            epoch: now,
        };
        Arc::new(PipeState {
            transport,
            unsent: Unsent::default(),
            inner: Mutex::new(inner),
        })
    }

    /// Begins a turn, in which a turn's worth may be received, or nothing.
    pub(super) fn begin_turn(&self, reads: bool) {
        let mut inner = self.inner.lock();
        inner.budget = if reads { READ_TURN } else { 0 };
        inner.until = Nanos::now() + TURN_TIME;
    }

    /// Begins a step: the output that the last one caused was sent, so more may be received.
    pub(super) fn begin_step(&self) {
        self.inner.lock().step = STEP_BYTES;
    }

    /// Returns true if it is time to send before more is received.
    pub(super) fn is_step_over(&self) -> bool {
        let inner = self.inner.lock();
        inner.step == 0 && inner.budget > 0 && !inner.has_ended
    }

    /// Returns true if the turn has ended before everything was received.
    pub(super) fn has_more(&self) -> bool {
        let inner = self.inner.lock();
        inner.budget == 0 && !inner.has_ended
    }

    /// The time since when the transport takes nothing more.
    pub(super) fn blocked_since(&self) -> Option<Millis> {
        self.inner.lock().blocked
    }

    /// The time since when a frame other than DATA, or a block of fields, is incomplete.
    pub(super) fn inside_since(&self) -> Option<Millis> {
        let inner = self.inner.lock();
        inner.incoming.inside_since().map(|since| inner.epoch + since)
    }

    /// The flood that the peer has caused, if any.
    pub(super) fn flood(&self) -> Option<Flood> {
        self.inner.lock().flood
    }

    /// The flood that `h2` has noticed first and has reported to the peer.
    pub(super) fn flood_told(&self) -> Option<Flood> {
        match self.inner.lock().outgoing.goaway_data() {
            b"too_many_resets" => Some(Flood::Resets),
            b"too_many_internal_resets" => Some(Flood::ProvokedResets),
            b"too_many_continuations" => Some(Flood::Continuations),
            b"too_many_data_frames" => Some(Flood::EmptyData),
            _ => None,
        }
    }

    /// Returns true if the peer has reset a stream since the last call.
    pub(super) fn take_has_reset(&self) -> bool {
        std::mem::take(&mut self.inner.lock().has_reset)
    }

    /// Notes a piece of a response that is small because of a window, see [`FrameMeter::cut`].
    pub(super) fn cut(&self) {
        self.inner.lock().incoming.cut();
    }

    /// Notes a stream that is about to be refused, see [`FrameMeter::refused`].
    pub(super) fn refused(&self) {
        self.inner.lock().incoming.refused();
    }

    /// The streams for which small DATA frames were received since the last call.
    pub(super) fn take_small(&self) -> Vec<u32> {
        let mut streams = std::mem::take(&mut self.inner.lock().small);
        streams.sort_unstable();
        streams.dedup();
        streams
    }
}

impl Inner {
    fn since_epoch(&self) -> std::time::Duration {
        Millis::now() - self.epoch
    }

    fn count_received(&mut self, bytes: &[u8], unsent: &Unsent) {
        let now = self.since_epoch();
        let (has_reset, small) = (&mut self.has_reset, &mut self.small);
        let flood = self.incoming.look_at_each(bytes, now, |frame| match frame.kind {
            frame_type::RST_STREAM => {
                *has_reset = true;
                unsent.drop_stream(frame.stream);
            }
            frame_type::DATA if (1..SMALL_FRAME).contains(&frame.length) => small.push(frame.stream),
            _ => {}
        });
        self.flood = self.flood.or(flood);
        if self.small.len() >= SMALL_FRAMES_OF_TURN {
            self.budget = 0;
        }
    }

    fn count_sent(&mut self, bytes: &[u8], unsent: &Unsent) {
        let now = self.since_epoch();
        let (incoming, flood) = (&mut self.incoming, &mut self.flood);
        // The peer detects floods in this direction.
        self.outgoing.look_at_each(bytes, now, |frame| {
            unsent.sent(frame);
            *flood = flood.or(incoming.sent(frame, now));
        });
        self.blocked = None;
    }

    fn note(&mut self, error: Errno) -> Poll<io::Result<usize>> {
        if error == Errno::AGAIN {
            self.blocked.get_or_insert_with(Millis::now);
            return Poll::Pending;
        }
        Poll::Ready(Err(error.into()))
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, space: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut inner = self.0.inner.lock();
        if inner.read < inner.ahead.len() {
            let rest = &inner.ahead[inner.read..];
            let count = rest.len().min(space.remaining());
            let part = rest[..count].to_vec();
            space.put_slice(&part);
            inner.count_received(&part, &self.0.unsent);
            inner.read += count;
            if inner.read == inner.ahead.len() {
                (inner.ahead, inner.read) = (Vec::new(), 0);
            }
            return Poll::Ready(Ok(()));
        }
        while inner.budget > 0 {
            if inner.step == 0 {
                return Poll::Pending;
            }
            if Nanos::now() >= inner.until {
                inner.budget = 0;
                return Poll::Pending;
            }
            let received = SCRATCH.with_borrow_mut(|scratch| {
                scratch.resize(SCRATCH_BYTES, 0);
                let most = space.remaining().min(SCRATCH_BYTES);
                let count = self.0.transport.receive(&mut scratch[..most])?;
                space.put_slice(&scratch[..count]);
                inner.count_received(&scratch[..count], &self.0.unsent);
                Ok(count)
            });
            match received {
                Ok(count) => {
                    inner.has_ended |= count == 0;
                    inner.budget = inner.budget.saturating_sub(count);
                    inner.step = inner.step.saturating_sub(count);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        Poll::Pending
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut inner = self.0.inner.lock();
        match self.0.transport.send(bytes, false) {
            Ok(count) => {
                inner.count_sent(&bytes[..count], &self.0.unsent);
                Poll::Ready(Ok(count))
            }
            Err(error) => inner.note(error),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.inner.lock();
        match self.0.transport.send_pieces(pieces) {
            Ok(count) => {
                let mut left = count;
                for piece in pieces {
                    let sent = left.min(piece.len());
                    inner.count_sent(&piece[..sent], &self.0.unsent);
                    left -= sent;
                }
                Poll::Ready(Ok(count))
            }
            Err(error) => inner.note(error),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.transport.send_rest() {
            Ok(()) => Poll::Ready(Ok(())),
            Err(error) => self.0.inner.lock().note(error).map_ok(|_| ()),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.0.transport.shut_down(Shutdown::Write).map_err(Into::into))
    }
}
