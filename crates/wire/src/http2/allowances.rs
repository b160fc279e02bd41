//! Limits the frames of each kind that a peer may send: some cost the receiver much more than the sender, and no client needs many
//! of them (RFC 9113 §10.5; CVE-2019-9511 to -9518, CVE-2023-44487, CVE-2025-8671).
//!
//! Each kind has an allowance that fills up with time. What a peer is sent, and the streams that it opens, earn it
//! more, because a client that is sent much has much to say: a window that is updated for each frame of content, a
//! PING that measures a response, a request that is cancelled among others that are not.

use super::frames::{frame_type, FrameHead, END_STREAM};
use std::time::Duration;

/// Frames that a peer has sent, or provoked, too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Streams that it has reset (CVE-2023-44487).
    Resets,
    /// Streams that it has made this server reset (CVE-2025-8671).
    ProvokedResets,
    /// SETTINGS, and their acknowledgements (CVE-2019-9515).
    Settings,
    /// PING, and answers to it (CVE-2019-9512).
    Pings,
    /// PRIORITY, PRIORITY_UPDATE, GOAWAY, and frames of unknown types: none of them has an effect (CVE-2019-9513).
    Priorities,
    /// WINDOW_UPDATE: tiny ones cost a frame for each byte (CVE-2019-9511).
    WindowUpdates,
    /// CONTINUATION of one block of fields (CVE-2024-27316).
    Continuations,
    /// DATA without data that does not end its stream (CVE-2019-9518), or with so little that it costs more memory than
    /// it has.
    EmptyData,
}

/// An allowance, in frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub(super) at_once: u32,
    pub(super) a_second: u32,
    /// Most that can be earned and not used.
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
            Flood::Resets => "it has reset too many streams",
            Flood::ProvokedResets => "it has made the server reset too many streams",
            Flood::Settings => "too many SETTINGS",
            Flood::Pings => "too many PINGs",
            Flood::Priorities => "too many frames without effect",
            Flood::WindowUpdates => "too many updates of windows",
            Flood::Continuations => "too many CONTINUATIONs",
            Flood::EmptyData => "too many DATA frames with little or no data",
        }
    }

    pub(super) fn allowance(self) -> Allowance {
        let (at_once, a_second, saved) = match self {
            // A reset costs no more than the response that it spares, if the streams that may be open at a time bound
            // what comes at once.
            Flood::Resets | Flood::ProvokedResets => (200, 50, 200),
            Flood::Settings => (50, 5, 0),
            Flood::Pings => (100, 10, 1_000),
            Flood::Priorities => (1_000, 100, 10_000),
            // A client may read for a while before it says what it has taken.
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

/// WINDOW_UPDATE for each frame of content that was sent, as Envoy allows them: several for the stream and for the
/// connection.
const UPDATES_PER_DATA: u64 = 10;

/// For each of so many bytes of content the peer may update one window more.
const BYTES_PER_UPDATE: usize = 256;

/// WINDOW_UPDATE for each stream that the peer opens: for the stream and for the connection.
const UPDATES_PER_STREAM: u64 = 2;

/// PRIORITY for each stream that the peer opens.
const PRIORITIES_PER_STREAM: u64 = 10;

/// Use of the allowances of one peer.
#[derive(Debug, Default)]
pub(super) struct Allowances {
    /// In thousandths.
    used: [u64; 8],
    earned: [u64; 8],
    /// When `used` was last reduced.
    since: Duration,
    /// The last stream that the peer has opened.
    last_stream: u32,
    /// Small frames of content to come that are small because of a window.
    cut: u32,
}

impl Allowances {
    /// The peer has sent, or provoked, one more. Returns it if that is one too many.
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

    /// The peer was sent a frame. Returns what it has provoked too often.
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

    /// Content is about to be sent in so small a piece only because the peer has opened a window so little. An update that
    /// makes the server send a frame for a few bytes must not earn the next one (CVE-2019-9511).
    pub(super) fn cut(&mut self) {
        self.cut = self.cut.saturating_add(1);
    }

    /// The next RST_STREAM is the server's own decision: it refuses a stream that it has no room for.
    pub(super) fn refused(&mut self) {
        self.earn(Flood::ProvokedResets, 1);
    }

    fn sent_content(&mut self, length: usize) {
        let by_size = (length / BYTES_PER_UPDATE) as u64;
        let is_cut = by_size == 0 && self.cut > 0;
        // A larger frame has what was cut, too.
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

    /// Counts the frames that may come at once after that.
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
