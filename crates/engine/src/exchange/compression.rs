//! Compression of the app's responses (RFC 9110 §8.4, §12.5.3): decides if a response is coded, changes its head, and
//! codes the bytes. The coding itself does not use the exchange, so it can run without the lock of the language.

use super::state::ResponsePhase;
use super::{Exchange, Gone};
use crate::config::Compression;
use fairlead_wire::content_encoding::{is_compressible, matches_type, Coding, Encoder};
use fairlead_wire::{fields, has_no_body};

/// Fields that describe the exact bytes of the app's body. A response with one of them is not coded.
const DIGESTS: [&[u8]; 4] = [b"content-digest", b"content-md5", b"digest", b"repr-digest"];

impl Exchange<'_> {
    /// Chooses the coding for the body of a response; its head was written, and has not ended. `total`: the length of
    /// the body, if known. Adds `vary`, even to a 304, because another client may get another coding.
    pub fn choose_coding(&mut self, total: Option<u64>) -> Option<Coding> {
        let services = self.services;
        let compression = services.config().compression.as_ref()?;
        let is_not_modified = self.head.response.status == 304 && self.phase == ResponsePhase::Head;
        if !is_not_modified && !self.is_worth_coding(compression, total) {
            return None;
        }
        let names_it = |value: &[u8]| fields::has_member(value, b"accept-encoding") || fields::has_member(value, b"*");
        if !self.head.response.fields.values(b"vary").any(names_it) {
            self.head.response.fields.add(b"vary", b"accept-encoding");
        }
        let accepted = self.request().accepted_codings();
        let coding = accepted.ranked(Coding::QUICKEST_FIRST).next();
        if is_not_modified && coding.is_some() {
            // The client's copy was coded (RFC 9110 §15.4.5).
            self.weaken_etag();
        }
        coding.filter(|_| !is_not_modified)
    }

    fn weaken_etag(&mut self) {
        if self
            .head
            .response
            .fields
            .get(b"etag")
            .is_some_and(|etag| etag.starts_with(b"\""))
        {
            self.head.response.fields.prefix(b"etag", b"W/");
        }
    }

    fn is_worth_coding(&self, compression: &Compression, total: Option<u64>) -> bool {
        let has = |name: &[u8]| self.head.response.fields.has(name);
        let forbids_it = |value: &[u8]| fields::has_member(value, b"no-transform");
        let total = if self.request().is_head() {
            self.announced_length()
        } else {
            total.or(self.announced_length())
        };
        let is_of_type = |content_type: &[u8]| match &compression.compress_types[..] {
            // Never compressed: each event would wait for the next one in the encoder.
            _ if matches_type(content_type, b"text/event-stream") => false,
            [] => is_compressible(content_type),
            types => types.iter().any(|own| matches_type(content_type, own.as_bytes())),
        };
        self.phase == ResponsePhase::Head
            && !has_no_body(self.head.response.status)
            && self.head.response.status != 206
            && total.is_none_or(|total| total >= compression.compress_min_bytes)
            && !self.has_own_framing()
            && self.head.response.fields.get(b"content-type").is_some_and(is_of_type)
            && !has(b"content-encoding")
            && !has(b"content-range")
            && !DIGESTS.into_iter().any(has)
            && !self.head.response.fields.values(b"cache-control").any(forbids_it)
    }

    /// Starts to code the body. Its bytes are added before or after the head ends.
    pub fn start_coding(&mut self, coding: Coding) {
        self.coder = Some(Box::new(Coder::new(coding)));
    }

    /// Ends the head of a coded response. With `is_whole` all of the body is coded already, and it is sent uncoded if
    /// coding has not made it shorter.
    pub fn end_head_coded(&mut self, is_whole: bool) {
        let Some(mut coder) = self.coder.take() else {
            return self.end_head(None);
        };
        self.drop_announced_length();
        if is_whole && coder.coded.len() as u64 >= coder.taken {
            std::mem::swap(&mut coder.coded, &mut coder.plain);
        } else {
            let _ = self.field(b"content-encoding", coder.coding.token().as_bytes());
            // Ranges would apply to the coded bytes, which may differ for the same content.
            self.head.response.fields.remove(b"accept-ranges");
            self.weaken_etag();
        }
        self.end_head(is_whole.then_some(coder.coded.len() as u64));
        if self.wants_body() {
            self.coder = Some(coder);
        }
    }

    /// Returns true if the body is coded.
    pub fn is_coded(&self) -> bool {
        self.coder.is_some()
    }

    /// Adds bytes of the body, to be coded by [`Coder::run`].
    pub fn add_plain(&mut self, bytes: &[u8]) {
        if let Some(coder) = &mut self.coder {
            coder.plain.extend_from_slice(bytes);
        }
    }

    /// Takes the coder, so that it can work apart from the exchange; to be given back with
    /// [`Exchange::give_back_coder`].
    pub fn take_coder(&mut self) -> Option<Box<Coder>> {
        self.coder.take()
    }

    /// See [`Exchange::take_coder`].
    pub fn give_back_coder(&mut self, coder: Box<Coder>) {
        self.coder = Some(coder);
    }

    /// Writes all coded bytes so far. Returns false if the caller has to wait for the client, as after
    /// [`Exchange::write`].
    ///
    /// # Errors
    /// If the client is gone.
    pub fn write_coded(&mut self) -> Result<bool, Gone> {
        let Some(mut coder) = self.coder.take() else {
            return Ok(true);
        };
        let written = self.write(&coder.coded[coder.sent..]);
        coder.sent += *written.as_ref().unwrap_or(&0);
        let is_done = coder.sent == coder.coded.len();
        if is_done {
            coder.coded.clear();
            coder.sent = 0;
        }
        self.coder = Some(coder);
        written.map(|_| is_done)
    }
}

/// The point up to which a body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// As far as the encoder chooses: more will follow at once.
    Convenient,
    /// So far that the client can decode everything that was added.
    Flushed,
    /// To its end.
    Finished,
}

/// Codes one body, piece by piece. It does not use the exchange while it works.
pub struct Coder {
    coding: Coding,
    encoder: Encoder,
    plain: Vec<u8>,
    /// Bytes that were coded so far.
    taken: u64,
    coded: Vec<u8>,
    sent: usize,
}

impl Coder {
    fn new(coding: Coding) -> Coder {
        Coder {
            coding,
            encoder: Encoder::new(coding),
            plain: Vec::new(),
            taken: 0,
            coded: Vec::new(),
            sent: 0,
        }
    }

    /// Codes the bytes that were added. If a body is added and finished at once, its plain bytes are kept as well.
    pub fn run(&mut self, until: Until) {
        self.encoder.write(&self.plain, &mut self.coded);
        let is_whole = self.taken == 0 && until == Until::Finished;
        self.taken += self.plain.len() as u64;
        match until {
            Until::Convenient => {}
            Until::Flushed => self.encoder.flush(&mut self.coded),
            Until::Finished => self.encoder.finish(&mut self.coded),
        }
        if !is_whole {
            self.plain.clear();
        }
    }
}
