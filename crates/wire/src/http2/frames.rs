//! Reads the frames of a connection: only the nine bytes before each payload. Reports the frames, an incomplete one,
//! and, by `allowances.rs`, a kind that comes too often.

use super::allowances::{Allowances, Flood};
use std::time::Duration;

/// Bytes before the payload of a frame (RFC 9113 §4.1).
const FRAME_HEADER: usize = 9;

/// Most CONTINUATION frames of one block. With the smallest legal frame limit, 16 KiB, they have room for 256 KiB.
const MOST_CONTINUATIONS: u32 = 16;

/// Most bytes of a GOAWAY that are stored.
const GOAWAY_BYTES: usize = 64;

/// The flag of DATA and HEADERS frames that end their stream.
pub(super) const END_STREAM: u8 = 1;

/// The frame types that code outside the meter uses (RFC 9113 §6).
pub mod frame_type {
    /// Content.
    pub const DATA: u8 = 0;
    /// The head of a request or of a response.
    pub const HEADERS: u8 = 1;
    /// The early end of a stream.
    pub const RST_STREAM: u8 = 3;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
}

/// The header of a frame (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the payload.
    pub length: usize,
    /// The type, see [`frame_type`].
    pub kind: u8,
    /// Flags; their meaning depends on the type.
    pub flags: u8,
    /// The stream; 0 for the connection.
    pub stream: u32,
}

impl FrameHead {
    fn of(bytes: [u8; FRAME_HEADER]) -> FrameHead {
        let [high, middle, low, kind, flags, stream @ ..] = bytes;
        FrameHead {
            length: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & !(1 << 31),
        }
    }
}

/// Counts the frames in one direction of a connection.
#[derive(Debug, Default)]
pub struct FrameMeter {
    /// The header of the current frame, and the number of its bytes that have arrived.
    header: [u8; FRAME_HEADER],
    filled: usize,
    /// Bytes of the payload that have not arrived yet.
    payload: usize,
    /// Bytes to skip before the first frame.
    skip: usize,
    allowances: Allowances,
    continuations: u32,
    /// The time since when a frame or a block of fields is incomplete, see [`FrameMeter::inside_since`].
    begun: Option<Duration>,
    /// The beginning of the payload of the last GOAWAY.
    goaway: Vec<u8>,
}

impl FrameMeter {
    /// A meter for a direction that begins with `skip` bytes before the first frame.
    pub fn after(skip: usize) -> FrameMeter {
        FrameMeter {
            skip,
            ..FrameMeter::default()
        }
    }

    /// Reads the next bytes. `now`: the time since any moment, the same for all calls. Returns the kind of frame that
    /// has come too often.
    pub fn look(&mut self, bytes: &[u8], now: Duration) -> Option<Flood> {
        self.look_at_each(bytes, now, |_| {})
    }

    /// Does the same, and calls `each` for each frame once its header is complete.
    pub fn look_at_each(&mut self, mut bytes: &[u8], now: Duration, mut each: impl FnMut(FrameHead)) -> Option<Flood> {
        let mut flood = None;
        while !bytes.is_empty() {
            let waiting = self.skip + self.payload;
            if waiting > 0 {
                let passed = waiting.min(bytes.len());
                let of_skip = self.skip.min(passed);
                self.skip -= of_skip;
                self.payload -= passed - of_skip;
                self.keep_goaway(&bytes[of_skip..passed]);
                bytes = &bytes[passed..];
                self.note_end();
                continue;
            }
            self.begun.get_or_insert(now);
            let taken = (FRAME_HEADER - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == FRAME_HEADER {
                self.filled = 0;
                let head = FrameHead::of(self.header);
                each(head);
                flood = flood.or(self.count(head, now));
                self.note_end();
            }
        }
        flood
    }

    /// The server has sent a frame to the peer. Returns the kind that the peer has provoked too often.
    pub fn sent(&mut self, head: FrameHead, now: Duration) -> Option<Flood> {
        self.allowances.sent(head, now)
    }

    /// The server is about to send content to the peer in a piece of less than 256 bytes, only because of the peer's
    /// windows.
    pub fn cut(&mut self) {
        self.allowances.cut();
    }

    /// The server is about to refuse a stream for lack of room. The peer has not provoked that reset.
    pub fn refused(&mut self) {
        self.allowances.refused();
    }

    /// The time at which the current frame, or block of fields, has begun. The payload of DATA may take as long as its
    /// body.
    pub fn inside_since(&self) -> Option<Duration> {
        self.begun
    }

    /// The debug data of the last GOAWAY (RFC 9113 §6.8), or the beginning of it.
    pub fn goaway_data(&self) -> &[u8] {
        self.goaway.get(8..).unwrap_or_default()
    }

    fn keep_goaway(&mut self, payload: &[u8]) {
        if self.header[3] == frame_type::GOAWAY {
            let room = GOAWAY_BYTES.saturating_sub(self.goaway.len());
            self.goaway.extend_from_slice(&payload[..payload.len().min(room)]);
        }
    }

    fn note_end(&mut self) {
        if self.payload == 0 && self.continuations == 0 {
            self.begun = None;
        }
    }

    fn count(&mut self, head: FrameHead, now: Duration) -> Option<Flood> {
        const END_HEADERS: u8 = 4;
        self.payload = head.length;
        match head.kind {
            frame_type::DATA => self.begun = None,
            frame_type::HEADERS => self.allowances.opened(head.stream),
            frame_type::GOAWAY => self.goaway.clear(),
            _ => {}
        }
        let flood = match head.kind {
            frame_type::DATA if head.length == 0 && head.flags & END_STREAM == 0 => Flood::EmptyData,
            frame_type::DATA => return None,
            frame_type::HEADERS | 9 if head.flags & END_HEADERS != 0 => {
                self.continuations = 0;
                return None;
            }
            frame_type::HEADERS | 9 => {
                self.continuations += 1;
                return (self.continuations > MOST_CONTINUATIONS).then_some(Flood::Continuations);
            }
            frame_type::RST_STREAM => Flood::Resets,
            // An acknowledgement has no effect if no frame of the server has asked for it, and few have.
            4 => Flood::Settings,
            6 => Flood::Pings,
            8 => Flood::WindowUpdates,
            // The end of the connection, by `h2`.
            5 => return None,
            _ => Flood::Priorities,
        };
        self.allowances.spend(flood, now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::allowances::Allowance;
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![
            (length >> 16) as u8,
            (length >> 8) as u8,
            length as u8,
            kind,
            flags,
            0,
            0,
            0,
            1,
        ];
        bytes.resize(FRAME_HEADER + length, 0xff);
        bytes
    }

    /// Returns the number of such frames that may come at once.
    fn allowed(frame: &[u8]) -> usize {
        let mut meter = FrameMeter::default();
        (0..100_000)
            .take_while(|_| meter.look(frame, Duration::ZERO).is_none())
            .count()
    }

    #[test]
    fn each_kind_has_an_allowance() {
        for (kind, flags, length, flood) in [
            (3, 0, 4, Flood::Resets),
            (4, 0, 6, Flood::Settings),
            (4, 1, 0, Flood::Settings),
            (6, 0, 8, Flood::Pings),
            (6, 1, 8, Flood::Pings),
            (frame_type::GOAWAY, 0, 8, Flood::Priorities),
            (2, 0, 5, Flood::Priorities),
            (16, 0, 9, Flood::Priorities),
            (77, 0, 0, Flood::Priorities),
            (8, 0, 4, Flood::WindowUpdates),
            (0, 0, 0, Flood::EmptyData),
        ] {
            let frame = frame(kind, flags, length);
            let Allowance { at_once, a_second, .. } = flood.allowance();
            assert_eq!(allowed(&frame), at_once as usize, "{flood:?}");
            let Some(each) = 1_000_u32.checked_div(a_second) else {
                continue;
            };
            let mut meter = FrameMeter::default();
            let each = Duration::from_millis(u64::from(each) + 1);
            let slowly = (0..5_000).find_map(|count| meter.look(&frame, each * count));
            assert_eq!(slowly, None, "{flood:?} at {a_second}/s");
        }
    }

    #[test]
    fn requests_ends_and_content_are_free() {
        for (kind, flags, length) in [(0, 1, 0), (0, 0, 1), (1, 4, 20)] {
            assert_eq!(allowed(&frame(kind, flags, length)), 100_000, "{kind}");
        }
    }

    #[test]
    fn a_block_of_fields_has_few_continuations() {
        let mut meter = FrameMeter::default();
        let now = Duration::ZERO;
        for _ in 0..100 {
            assert_eq!(meter.look(&frame(1, 0, 10), now), None);
            assert!(meter.inside_since().is_some());
            for _ in 1..MOST_CONTINUATIONS {
                assert_eq!(meter.look(&frame(9, 0, 10), now), None);
            }
            assert_eq!(meter.look(&frame(9, 4, 10), now), None);
            assert_eq!(meter.inside_since(), None);
        }
        meter.look(&frame(1, 0, 10), now);
        let floods = (0..MOST_CONTINUATIONS).find_map(|_| meter.look(&frame(9, 0, 1), now));
        assert_eq!(floods, Some(Flood::Continuations));
    }

    #[test]
    fn a_frame_that_is_incomplete_has_begun_when_its_first_byte_came() {
        let at = Duration::from_secs;
        let mut meter = FrameMeter::default();
        let (headers, data) = (frame(1, 0, 20), frame(0, 0, 1_000));
        // Content in pieces that do not match its frames: each header has its own time.
        let content = data.repeat(20);
        for (second, piece) in content.chunks(100).enumerate() {
            meter.look(piece, at(second as u64));
            let since = meter.inside_since();
            assert!(
                since.is_none_or(|since| since == at(second as u64)),
                "{second}: {since:?}"
            );
        }
        meter = FrameMeter::default();
        meter.look(&headers[..5], at(1));
        meter.look(&headers[5..15], at(2));
        assert_eq!(meter.inside_since(), Some(at(1)));
        meter.look(&headers[15..], at(3));
        meter.look(&frame(9, 0, 20), at(4));
        assert_eq!(meter.inside_since(), Some(at(1)), "the block goes on");
        meter.look(&frame(9, 4, 20), at(5));
        assert_eq!(meter.inside_since(), None);
        meter.look(&frame(6, 0, 8)[..12], at(6));
        assert_eq!(meter.inside_since(), Some(at(6)));
    }

    #[test]
    fn what_a_goaway_says_is_kept() {
        let mut bytes = frame(frame_type::GOAWAY, 0, 12);
        bytes.splice(FRAME_HEADER + 8.., *b"calm");
        let bytes = [frame(0, 0, 30), bytes, frame(6, 0, 8)].concat();
        for step in 1..bytes.len() {
            let mut meter = FrameMeter::default();
            bytes
                .chunks(step)
                .for_each(|piece| _ = meter.look(piece, Duration::ZERO));
            assert_eq!(meter.goaway_data(), b"calm", "pieces of {step}");
        }
        let mut meter = FrameMeter::default();
        meter.look(&frame(frame_type::GOAWAY, 0, 100_000), Duration::ZERO);
        assert_eq!(meter.goaway_data().len(), GOAWAY_BYTES - 8);
    }

    #[test]
    fn each_frame_is_told_once() {
        let bytes = [frame(0, 1, 300), frame(3, 0, 4), frame(8, 0, 4)].concat();
        for step in 1..bytes.len() {
            let (mut meter, mut seen) = (FrameMeter::default(), Vec::new());
            for piece in bytes.chunks(step) {
                meter.look_at_each(piece, Duration::ZERO, |head| {
                    seen.push((head.kind, head.length, head.stream))
                });
            }
            assert_eq!(seen, [(0, 300, 1), (3, 4, 1), (8, 4, 1)], "pieces of {step}");
        }
    }

    #[test]
    fn windows_may_be_updated_as_content_is_sent() {
        let update = frame(8, 0, 4);
        let content = FrameHead::of(frame(0, 0, 1)[..9].try_into().expect("nine bytes"));
        let mut meter = FrameMeter::default();
        for _ in 0..50_000 {
            meter.sent(content, Duration::ZERO);
            assert_eq!(meter.look(&update.repeat(10), Duration::ZERO), None);
        }
        let flood = (0..50_000).find_map(|_| {
            meter.sent(content, Duration::ZERO);
            meter.look(&update.repeat(11), Duration::ZERO)
        });
        assert_eq!(flood, Some(Flood::WindowUpdates));
    }

    #[test]
    fn it_does_not_matter_how_the_bytes_are_split() {
        let frames: Vec<u8> = (0..60).flat_map(|length| frame(4, 0, length)).collect();
        let bytes = [&b"preface"[..], &frames].concat();
        for step in 1..40 {
            let mut meter = FrameMeter::after(7);
            let flood = bytes
                .chunks(step)
                .filter_map(|part| meter.look(part, Duration::ZERO))
                .count();
            assert!(flood > 0, "pieces of {step}");
            assert_eq!(meter.inside_since(), None);
        }
    }
}
