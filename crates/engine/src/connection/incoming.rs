//! Body of a request while it arrives: its end, its minimum rate, and its waits.

use crate::clock::Millis;
use crate::config::Config;
use crate::limits::meter::Meter;
use fairlead_wire::http1::ChunkedDecoder;
use fairlead_wire::Error;

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Incoming {
    end: BodyEnd,
    meter: Meter,
    /// Time at which the head was complete.
    began: Millis,
    /// Time since when the body is not read, because it needs a file and there is no descriptor for one.
    waits: Option<Millis>,
    /// Bytes of the body that were read, for the spooler to store.
    unstored: Vec<u8>,
    /// Time at which the connection was last given to the spooler.
    kept_since: Millis,
}

/// End of a body.
#[derive(Debug)]
pub(super) enum BodyEnd {
    /// After this number of bytes.
    Length(u64),
    /// After the last chunk.
    Chunks(Box<ChunkedDecoder>),
    /// At the end of the stream.
    Stream,
}

/// Part of the input that belongs to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unframed {
    pub(super) consumed: usize,
    pub(super) is_whole: bool,
}

impl Incoming {
    pub(super) fn new(end: BodyEnd, now: Millis) -> Incoming {
        Incoming {
            end,
            meter: Meter::begin(now),
            began: now,
            waits: None,
            unstored: Vec::new(),
            kept_since: now,
        }
    }

    /// Time at which the head was complete.
    pub(super) fn began(&self) -> Millis {
        self.began
    }

    /// True if the body ends with the stream.
    pub(super) fn ends_with_stream(&self) -> bool {
        matches!(self.end, BodyEnd::Stream)
    }

    /// Time at which the client, or the wait for a descriptor, has taken too long.
    pub(super) fn deadline(&self, config: &Config) -> Millis {
        match self.waits {
            Some(since) => since + config.body_timeout,
            None => self.meter.deadline(config.body_rate()),
        }
    }

    /// Passes the data in `bytes` to `keep`. `before`: bytes of the body that were read earlier.
    ///
    /// # Errors
    /// If the framing is wrong.
    pub(super) fn unframe(
        &mut self,
        bytes: &[u8],
        before: u64,
        keep: &mut impl FnMut(&[u8]),
    ) -> Result<Unframed, Error> {
        Ok(match &mut self.end {
            BodyEnd::Chunks(decoder) => {
                let progress = decoder.decode(bytes, keep)?;
                Unframed {
                    consumed: progress.consumed,
                    is_whole: progress.done,
                }
            }
            BodyEnd::Stream => {
                keep(bytes);
                Unframed {
                    consumed: bytes.len(),
                    is_whole: false,
                }
            }
            BodyEnd::Length(length) => {
                let missing = *length - before;
                let consumed = missing.min(bytes.len() as u64) as usize;
                keep(&bytes[..consumed]);
                Unframed {
                    consumed,
                    is_whole: consumed as u64 == missing,
                }
            }
        })
    }

    /// Counts received bytes of the body.
    pub(super) fn moved(&mut self, bytes: u64, now: Millis, config: &Config) {
        self.meter.moved(bytes, now, config.body_rate());
    }

    /// Restarts the meter: a client that has sent more than one turn reads is not slow.
    pub(super) fn restart(&mut self, now: Millis) {
        self.meter = Meter::begin(now);
    }

    /// Does not charge the client for the time since `then`.
    pub(super) fn forgive_since(&mut self, then: Millis, now: Millis) {
        self.meter.forgive(now - then);
    }

    /// Time since when it has waited for a descriptor.
    pub(super) fn waits_since(&self) -> Option<Millis> {
        self.waits
    }

    /// Begins to wait for a descriptor.
    pub(super) fn wait(&mut self, now: Millis) {
        self.waits = Some(now);
    }

    /// Ends the wait for a descriptor. The client is not charged for it.
    pub(super) fn go_on(&mut self, now: Millis) {
        let since = self.waits.take().unwrap_or(now);
        self.forgive_since(since, now);
    }

    /// Gives the body to the spooler, with bytes that were read.
    pub(super) fn keep_unstored(&mut self, unstored: Vec<u8>, now: Millis) {
        self.unstored = unstored;
        self.kept_since = now;
    }

    /// Called in the spooler's turn. The client is not charged for the wait for the spooler or for a slow disk.
    pub(super) fn take_unstored(&mut self, now: Millis) -> Vec<u8> {
        self.forgive_since(self.kept_since, now);
        std::mem::take(&mut self.unstored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unframe(incoming: &mut Incoming, bytes: &[u8], before: u64) -> (Vec<u8>, Result<Unframed, Error>) {
        let mut kept = Vec::new();
        let unframed = incoming.unframe(bytes, before, &mut |part| kept.extend_from_slice(part));
        (kept, unframed)
    }

    #[test]
    fn a_body_with_a_length_leaves_what_follows_it() {
        let mut incoming = Incoming::new(BodyEnd::Length(5), Millis::now());
        let part = |consumed, is_whole| Ok(Unframed { consumed, is_whole });
        assert_eq!(unframe(&mut incoming, b"abc", 0), (b"abc".to_vec(), part(3, false)));
        assert_eq!(unframe(&mut incoming, b"deGET", 3), (b"de".to_vec(), part(2, true)));
    }

    #[test]
    fn a_body_in_chunks_leaves_what_follows_it() {
        let mut incoming = Incoming::new(BodyEnd::Chunks(Box::new(ChunkedDecoder::new(1024))), Millis::now());
        let (kept, unframed) = unframe(&mut incoming, b"3\r\nabc\r\n0\r\n\r\nGET", 0);
        assert_eq!(kept, b"abc");
        let (consumed, is_whole) = (13, true);
        assert_eq!(unframed, Ok(Unframed { consumed, is_whole }));
        assert!(unframe(
            &mut Incoming::new(BodyEnd::Chunks(Box::new(ChunkedDecoder::new(9))), Millis::now()),
            b"x",
            0
        )
        .1
        .is_err());
    }

    #[test]
    fn a_body_that_ends_with_its_stream_is_not_whole_before() {
        let mut incoming = Incoming::new(BodyEnd::Stream, Millis::now());
        let (kept, unframed) = unframe(&mut incoming, b"abc", 0);
        assert!(kept == b"abc" && unframed.is_ok_and(|unframed| !unframed.is_whole));
        assert!(incoming.ends_with_stream());
    }
}
