//! Limits the frames of each kind that a peer may send: some cost the receiver much more than the sender, and no client
//! needs many of them (RFC 9113 §10.5; CVE-2019-9511 to -9518, CVE-2023-44487, CVE-2025-8671).
//!
//! Each kind has an allowance that refills over time. Frames that the server sends to the peer, and streams that the
//! peer opens, add to it, because a client that receives much has reason to send more frames: window updates for frames
//! of content, a PING that measures a response, a canceled request among completed ones.

use super::frames::{frame_type, FrameHead, END_STREAM};
use std::time::Duration;

/// A kind of frame that a peer has sent, or provoked, too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Streams that the peer has reset (CVE-2023-44487).
    Resets,
    /// Streams that the peer has made this server reset (CVE-2025-8671).
    ProvokedResets,
    /// SETTINGS, and their acknowledgements (CVE-2019-9515).
    Settings,
    /// PING, and its acknowledgements (CVE-2019-9512).
    Pings,
    /// PRIORITY, PRIORITY_UPDATE, GOAWAY, and frames of unknown types: all of them have no effect (CVE-2019-9513).
    Priorities,
    /// WINDOW_UPDATE: tiny ones cost a frame for each byte (CVE-2019-9511).
    WindowUpdates,
    /// CONTINUATION of one block of fields (CVE-2024-27316).
    Continuations,
    /// DATA without data that does not end its stream (CVE-2019-9518), or with so little data that it costs more memory
    /// than it contains.
    EmptyData,
}

/// An allowance, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) at_once: u32,
    pub(super) a_second: u32,
    /// Most frames that can be earned and not used.
    saved: u32,
}

impl Flood {
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

    /// The reason in the log.
    pub fn name(self) -> &'static str {
        match self {
            Flood::Resets => "too many reset streams",
            Flood::ProvokedResets => "too many streams that the server had to reset",
            Flood::Settings => "too many SETTINGS",
            Flood::Pings => "too many PINGs",
            Flood::Priorities => "too many frames without effect",
            Flood::WindowUpdates => "too many WINDOW_UPDATEs",
            Flood::Continuations => "too many CONTINUATIONs",
            Flood::EmptyData => "too many DATA frames with little or no data",
        }
    }

    pub(super) fn allowance(self) -> Allowance {
        let (at_once, a_second, saved) = match self {
            // A reset costs no more than the response that it spares, because the number of concurrent streams limits
            // the burst.
            Flood::Resets | Flood::ProvokedResets => (200, 50, 200),
            Flood::Settings => (50, 5, 0),
            Flood::Pings => (100, 10, 1_000),
            Flood::Priorities => (1_000, 100, 10_000),
            // A client may read for a while before it updates its windows.
            Flood::WindowUpdates => (1_000, 100, 1 << 20),
            Flood::Continuations => (0, 0, 0),
            // `h2` allows as many in the life of a connection.
            Flood::EmptyData => (100, 0, 0),
        };
        Allowance {
            at_once,
            a_second,
            saved,
        }
    }
}

/// WINDOW_UPDATEs for each frame of content that was sent, as Envoy allows them: several for the stream and for the
/// connection.
const UPDATES_PER_DATA: u64 = 10;

/// Each time the server has sent this many bytes of content, the peer may send one more WINDOW_UPDATE.
const BYTES_PER_UPDATE: usize = 256;

/// WINDOW_UPDATEs for each stream that the peer opens: one for the stream and one for the connection.
const UPDATES_PER_STREAM: u64 = 2;

/// PRIORITY frames for each stream that the peer opens.
const PRIORITIES_PER_STREAM: u64 = 10;

/// Use of the allowances of one peer.
#[derive(Debug, Default)]
pub(super) struct Allowances {
    /// In thousandths of a frame.
    used: [u64; 8],
    earned: [u64; 8],
    /// The time at which `used` was last reduced.
    since: Duration,
    /// The last stream that the peer has opened.
    last_stream: u32,
    /// Number of frames of content to come that are small because of a window.
    cut: u32,
}

impl Allowances {
    /// The peer has sent, or provoked, one more frame of this kind. Returns the kind if that is one too many.
    pub(super) fn spend(&mut self, flood: Flood, now: Duration) -> Option<Flood> {
        let earned = &mut self.earned[flood as usize];
        if *earned > 0 {
            *earned -= 1;
            return None;
        }
        self.refill(now);
        let used = &mut self.used[flood as usize];
        *used += 1_000;
        (*used > u64::from(flood.allowance().at_once) * 1_000).then_some(flood)
    }

    /// The peer has sent the head of a request, or trailers.
    pub(super) fn opened(&mut self, stream: u32) {
        if stream > self.last_stream {
            self.last_stream = stream;
            self.earn(Flood::WindowUpdates, UPDATES_PER_STREAM);
            self.earn(Flood::Priorities, PRIORITIES_PER_STREAM);
        }
    }

    /// The server has sent a frame to the peer. Returns the kind that the peer has provoked too often.
    pub(super) fn sent(&mut self, head: FrameHead, now: Duration) -> Option<Flood> {
        match head.kind {
            frame_type::DATA => self.sent_content(head.length),
            frame_type::HEADERS => {}
            frame_type::RST_STREAM => return self.spend(Flood::ProvokedResets, now),
            _ => return None,
        }
        self.earn(Flood::Pings, 1);
        if head.flags & END_STREAM != 0 {
            self.earn(Flood::Resets, 1);
            self.earn(Flood::ProvokedResets, 1);
        }
        None
    }

    /// The server is about to send a small piece of content, only because the peer has opened a window so little. A
    /// window update that makes the server send a frame with a few bytes must not earn the next one (CVE-2019-9511).
    pub(super) fn cut(&mut self) {
        self.cut = self.cut.saturating_add(1);
    }

    /// The next RST_STREAM is the server's own decision: it refuses a stream for lack of room.
    pub(super) fn refused(&mut self) {
        self.earn(Flood::ProvokedResets, 1);
    }

    fn sent_content(&mut self, length: usize) {
        let by_size = (length / BYTES_PER_UPDATE) as u64;
        let is_cut = by_size == 0 && self.cut > 0;
        // A larger frame includes the content that was cut.
        self.cut = if is_cut { self.cut - 1 } else { 0 };
        if !is_cut {
            self.earn(Flood::WindowUpdates, UPDATES_PER_DATA + by_size);
        }
    }

    fn earn(&mut self, flood: Flood, frames: u64) {
        let earned = &mut self.earned[flood as usize];
        *earned = (*earned + frames).min(u64::from(flood.allowance().saved));
    }

    fn refill(&mut self, now: Duration) {
        let passed = now.saturating_sub(self.since).as_millis() as u64;
        if passed == 0 {
            return;
        }
        self.since = now;
        for flood in Flood::ALL {
            let used = &mut self.used[flood as usize];
            *used = used.saturating_sub(passed * u64::from(flood.allowance().a_second));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, flags: u8, length: usize) -> FrameHead {
        FrameHead {
            length,
            kind,
            flags,
            stream: 1,
        }
    }

    /// Returns the number of frames that may come at once after that.
    fn allowed(mut allowances: Allowances, flood: Flood) -> u64 {
        (0..10_000_000)
            .take_while(|_| allowances.spend(flood, Duration::ZERO).is_none())
            .count() as u64
    }

    fn after(frames: &[FrameHead]) -> Allowances {
        let mut allowances = Allowances::default();
        for frame in frames {
            assert_eq!(allowances.sent(*frame, Duration::ZERO), None);
        }
        allowances
    }

    #[test]
    fn what_is_sent_earns_the_frames_that_say_so() {
        let base = |flood: Flood| u64::from(flood.allowance().at_once);
        let content = head(frame_type::DATA, 0, 1_000);
        let end = head(frame_type::DATA, END_STREAM, 0);
        for (frames, flood, earned) in [
            (vec![content; 5], Flood::WindowUpdates, 5 * (10 + 3)),
            (vec![content; 5], Flood::Pings, 5),
            (vec![head(frame_type::HEADERS, 4, 20); 3], Flood::Pings, 3),
            (vec![content; 5], Flood::Resets, 0),
            (vec![content, end, end], Flood::Resets, 2),
            (vec![content, end, end], Flood::ProvokedResets, 2),
            (vec![head(frame_type::HEADERS, 5, 20)], Flood::Resets, 1),
            (vec![content, end], Flood::Settings, 0),
            (vec![content, end], Flood::Priorities, 0),
            (vec![content, end], Flood::EmptyData, 0),
            (vec![head(frame_type::GOAWAY, 1, 8)], Flood::Pings, 0),
        ] {
            assert_eq!(allowed(after(&frames), flood), base(flood) + earned, "{flood:?}");
        }
    }

    #[test]
    fn a_window_that_is_opened_a_little_earns_no_further_updates() {
        let (small, large) = (head(frame_type::DATA, 0, 1), head(frame_type::DATA, 0, 1_000));
        let mut allowances = Allowances::default();
        let flood = (1..10_000).find_map(|count| {
            allowances.cut();
            allowances.sent(small, Duration::ZERO);
            allowances.spend(Flood::WindowUpdates, Duration::ZERO).map(|_| count)
        });
        assert_eq!(flood, Some(1_001));
        let mut allowances = Allowances::default();
        allowances.cut();
        allowances.cut();
        allowances.sent(large, Duration::ZERO);
        allowances.sent(small, Duration::ZERO);
        assert_eq!(allowed(allowances, Flood::WindowUpdates), 1_000 + 13 + 10);
    }

    #[test]
    fn each_stream_earns_something_once() {
        let mut allowances = Allowances::default();
        for stream in [1, 3, 3, 1, 5] {
            allowances.opened(stream);
        }
        assert_eq!(allowances.earned[Flood::WindowUpdates as usize], 3 * UPDATES_PER_STREAM);
        assert_eq!(allowances.earned[Flood::Priorities as usize], 3 * PRIORITIES_PER_STREAM);
    }

    #[test]
    fn no_more_is_saved_than_it_may_be() {
        let frames = vec![head(frame_type::DATA, END_STREAM, 16_384); 50_000];
        for flood in Flood::ALL {
            let Allowance { at_once, saved, .. } = flood.allowance();
            assert_eq!(
                allowed(after(&frames), flood),
                match flood {
                    Flood::Priorities => 1_000,
                    _ => u64::from(at_once + saved),
                },
                "{flood:?}"
            );
        }
    }

    #[test]
    fn streams_that_are_reset_instead_of_answered_use_up_what_others_have_earned() {
        let mut allowances = after(&vec![head(frame_type::DATA, END_STREAM, 0); 100]);
        let reset = head(frame_type::RST_STREAM, 0, 4);
        let provoked = (1..1_000).find(|_| allowances.sent(reset, Duration::ZERO).is_some());
        assert_eq!(provoked, Some(301));
    }
}
