//! Counts the frames of a peer, by kind: some cost the receiver much more than the sender, and no client needs many of
//! them (RFC 9113 §10.5; CVE-2019-9511 to -9518, CVE-2023-44487, CVE-2025-8671).
//!
//! Each kind has an allowance that fills up with time, and, for updates of windows, with what the peer is sent. Only the
//! nine bytes before each frame are looked at.

use std::time::Duration;

/// Bytes before the payload of a frame (RFC 9113 §4.1).
const FRAME_HEADER: usize = 9;

/// What a peer has sent, or provoked, too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Streams that it has reset (CVE-2023-44487).
    Resets,
    /// Streams that it has made this server reset (CVE-2025-8671).
    ProvokedResets,
    /// SETTINGS (CVE-2019-9515).
    Settings,
    /// PING (CVE-2019-9512).
    Pings,
    /// PRIORITY, PRIORITY_UPDATE, and frames of unknown types, none of which has an effect (CVE-2019-9513).
    Priorities,
    /// WINDOW_UPDATE: tiny ones cost a frame for each byte (CVE-2019-9511).
    WindowUpdates,
    /// CONTINUATION of one block of fields (CVE-2024-27316).
    Continuations,
    /// DATA without data that does not end its stream (CVE-2019-9518).
    EmptyData,
}

impl Flood {
    /// What it is called in the log.
    pub fn name(self) -> &'static str {
        match self {
            Flood::Resets => "it has reset too many streams",
            Flood::ProvokedResets => "it has made the server reset too many streams",
            Flood::Settings => "too many SETTINGS",
            Flood::Pings => "too many PINGs",
            Flood::Priorities => "too many frames without effect",
            Flood::WindowUpdates => "too many updates of windows",
            Flood::Continuations => "too many CONTINUATIONs",
            Flood::EmptyData => "too many DATA frames without data",
        }
    }

    /// How many at once, and how many in a second.
    fn allowance(self) -> (u32, u32) {
        match self {
            Flood::Resets | Flood::ProvokedResets => (200, 50),
            Flood::Settings => (50, 5),
            Flood::Pings => (100, 10),
            Flood::Priorities => (1_000, 100),
            Flood::WindowUpdates => (1_000, 100),
            Flood::Continuations => (0, 0),
            Flood::EmptyData => (100, 10),
        }
    }
}

/// Most CONTINUATION frames of one block: with frames of the smallest legal limit, 16 KiB, they have room for 256 KiB.
const MOST_CONTINUATIONS: u32 = 16;

/// Most bytes of a GOAWAY that are kept.
const GOAWAY_BYTES: usize = 64;

/// For each of so many bytes that were sent, the peer may update one window more.
const BYTES_PER_UPDATE: u64 = 256;

/// The types of frames that others than the meter look at (RFC 9113 §6).
pub mod frame_type {
    /// Content.
    pub const DATA: u8 = 0;
    /// The end of a stream before its time.
    pub const RST_STREAM: u8 = 3;
    /// The end of the connection.
    pub const GOAWAY: u8 = 7;
}

/// What a frame begins with (RFC 9113 §4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the payload.
    pub length: usize,
    /// The type, see [`frame_type`].
    pub kind: u8,
    /// What they mean depends on the type.
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

/// Counts what comes in one direction of a connection.
#[derive(Debug, Default)]
pub struct FrameMeter {
    /// The header of the frame that is being read, and how much of it is there.
    header: [u8; FRAME_HEADER],
    filled: usize,
    /// Bytes of the payload that are still to come.
    payload: usize,
    /// Bytes to skip before the first frame.
    skip: usize,
    /// What was used of each allowance, in thousandths.
    used: [u64; 8],
    /// When that was last reduced.
    since: Duration,
    continuations: u32,
    /// Since when a frame or a block of fields is incomplete, see [`FrameMeter::inside_since`].
    begun: Option<Duration>,
    /// The beginning of the payload of the last GOAWAY.
    goaway: Vec<u8>,
}

impl FrameMeter {
    /// A meter for a direction that begins with so many bytes before the first frame.
    pub fn after(skip: usize) -> FrameMeter {
        FrameMeter {
            skip,
            ..FrameMeter::default()
        }
    }

    /// Looks at bytes that come next. `now`: the time since any moment, the same for all calls. Returns what there is too
    /// much of.
    pub fn look(&mut self, bytes: &[u8], now: Duration) -> Option<Flood> {
        self.look_at_each(bytes, now, |_| {})
    }

    /// The same; `each` is told of each frame once its head is there.
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

    /// The peer was sent so many bytes of content, and may tell how much more it takes.
    pub fn sent(&mut self, bytes: usize) {
        let used = &mut self.used[Flood::WindowUpdates as usize];
        *used = used.saturating_sub(bytes as u64 * 1_000 / BYTES_PER_UPDATE);
    }

    /// Since when a frame, or a block of fields, has begun and not ended. The payload of DATA may take as long as the body
    /// to which it belongs.
    pub fn inside_since(&self) -> Option<Duration> {
        self.begun
    }

    /// What the last GOAWAY says beside its code (RFC 9113 §6.8), or the beginning of that.
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
        const ACK_OR_END_STREAM: u8 = 1;
        const END_HEADERS: u8 = 4;
        let has_first_flag = head.flags & ACK_OR_END_STREAM != 0;
        self.payload = head.length;
        match head.kind {
            frame_type::DATA => self.begun = None,
            frame_type::GOAWAY => self.goaway.clear(),
            _ => {}
        }
        let flood = match head.kind {
            frame_type::DATA if head.length == 0 && !has_first_flag => Flood::EmptyData,
            frame_type::DATA => return None,
            1 | 9 if head.flags & END_HEADERS != 0 => {
                self.continuations = 0;
                return None;
            }
            1 | 9 => {
                self.continuations += 1;
                return (self.continuations > MOST_CONTINUATIONS).then_some(Flood::Continuations);
            }
            frame_type::RST_STREAM => Flood::Resets,
            4 | 6 if has_first_flag => return None,
            4 => Flood::Settings,
            6 => Flood::Pings,
            8 => Flood::WindowUpdates,
            5 | frame_type::GOAWAY => return None,
            _ => Flood::Priorities,
        };
        self.spend(flood, now)
    }

    fn spend(&mut self, flood: Flood, now: Duration) -> Option<Flood> {
        self.refill(now);
        let used = &mut self.used[flood as usize];
        *used += 1_000;
        let (at_once, _) = flood.allowance();
        (*used > u64::from(at_once) * 1_000).then_some(flood)
    }

    fn refill(&mut self, now: Duration) {
        const ALL: [Flood; 8] = [
            Flood::Resets,
            Flood::ProvokedResets,
            Flood::Settings,
            Flood::Pings,
            Flood::Priorities,
            Flood::WindowUpdates,
            Flood::Continuations,
            Flood::EmptyData,
        ];
        let passed = now.saturating_sub(self.since).as_millis() as u64;
        if passed == 0 {
            return;
        }
        self.since = now;
        for flood in ALL {
            let (_, a_second) = flood.allowance();
            let used = &mut self.used[flood as usize];
            *used = used.saturating_sub(passed * u64::from(a_second));
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// How many of such frames may come at once.
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
            (6, 0, 8, Flood::Pings),
            (2, 0, 5, Flood::Priorities),
            (16, 0, 9, Flood::Priorities),
            (77, 0, 0, Flood::Priorities),
            (8, 0, 4, Flood::WindowUpdates),
            (0, 0, 0, Flood::EmptyData),
        ] {
            let frame = frame(kind, flags, length);
            let (at_once, a_second) = flood.allowance();
            assert_eq!(allowed(&frame), at_once as usize, "{flood:?}");
            let mut meter = FrameMeter::default();
            let each = Duration::from_millis(u64::from(1_000 / a_second) + 1);
            let slowly = (0..5_000).find_map(|count| meter.look(&frame, each * count));
            assert_eq!(slowly, None, "{flood:?} at {a_second}/s");
        }
    }

    #[test]
    fn answers_ends_and_content_are_free() {
        for (kind, flags, length) in [(4, 1, 0), (6, 1, 8), (0, 1, 0), (0, 0, 1), (1, 4, 20), (7, 0, 8)] {
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
        // Content that comes in other pieces than its frames: each head has its own time.
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
        let mut meter = FrameMeter::default();
        for _ in 0..50_000 {
            meter.sent(BYTES_PER_UPDATE as usize);
            assert_eq!(meter.look(&update, Duration::ZERO), None);
        }
        let mut tiny = FrameMeter::default();
        let flood = (0..50_000).find_map(|_| {
            tiny.sent(1);
            tiny.look(&update, Duration::ZERO)
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
