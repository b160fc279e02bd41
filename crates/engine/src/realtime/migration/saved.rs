//! The state of a client that migrates, as a value, and as bytes in `format.rs`. `saved/`: its subscriptions, the tags of its
//! fields (`tag.rs`, `inner.rs`) and their values.

mod inner;
mod subscriptions;
mod tag;
#[cfg(test)]
pub(super) mod tests;
mod values;

pub(in crate::realtime) use subscriptions::{SavedName, SavedStream, SavedSubscriptions};

use super::format::{Fields, Unreadable, Writer};
use super::lineage::SharedMemory;
use crate::clock::Millis;
use crate::limits::holders::Owner;
use crate::pubsub::{Cut, WireForm};
use crate::realtime::client::Protocol;
use crate::realtime::frames::Unsent;
use fairlead_tls_record::SecretBytes;
use fairlead_wire::websocket::Deflate;
use std::net::SocketAddr;
use std::sync::Arc;
use values::{deflate_bytes, deflate_of, peer_bytes, peer_of, protocol_number, protocol_of};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct SavedClient {
    pub(super) protocol: Protocol,
    pub(super) deflate: Option<Deflate>,
    /// Of the connection: see [`Origin::fingerprint`](crate::Origin::fingerprint).
    pub(crate) origin: u32,
    pub(crate) peer: Option<SocketAddr>,
    /// State of the TLS connection; `None` for a plain one.
    pub(crate) tls: Option<SecretBytes>,
    pub(super) owner: Owner,
    pub(super) flow: Option<u64>,
    /// Of the decoder of a WebSocket; the bytes that it has not decoded; the rest of the frame that the peer has got in part,
    /// and the frames that it has not got.
    pub(super) decoder: Option<Vec<u8>>,
    pub(super) undecoded: Vec<u8>,
    pub(super) begun: Vec<u8>,
    /// Bytes of the first frame that the peer has got.
    pub(super) sent: u64,
    pub(super) unsent: Vec<Unsent>,
    /// Bytes among all of these that are messages of the history, or more.
    pub(super) past: u64,
    pub(super) owes_drained: bool,
    /// The events that the app wants.
    pub(super) wanted: u64,
    pub(super) silence: SavedSilence,
    pub(crate) cut: Arc<Cut>,
    /// The memory to which the cut refers.
    pub(super) memory: SharedMemory,
    /// Generation of the code that has made the state of the app.
    pub(super) generation: u64,
    /// The time at which it left.
    pub(crate) left: Millis,
    pub(super) subscriptions: SavedSubscriptions,
    /// Messages that wait for a block of the app: its number, the channel and the message.
    pub(super) published: Vec<SavedPublication>,
    /// Messages of the peer that wait for the app, because it has not resumed the client: text or not, and the bytes.
    pub(super) messages: Vec<(bool, Vec<u8>)>,
    /// State of the app; `None` if it has none.
    pub(super) application: Option<Vec<u8>>,
}

/// A message for a block: the number of the block, the channel and the message.
pub(super) type SavedPublication = (u64, Arc<[u8]>, Arc<[u8]>);

/// Times of a keep-alive, as ages in milliseconds: clocks differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::realtime) struct SavedSilence {
    /// Seconds of silence before a ping; 0 for never.
    pub(in crate::realtime) period: u32,
    pub(in crate::realtime) heard: u64,
    pub(in crate::realtime) pinged: u64,
}

/// The fields of a client that each version reads of all others: see `farewell.rs`.
pub(super) struct Parting<'a> {
    pub(super) protocol: Protocol,
    pub(super) has_tls: bool,
    /// The rest of a frame that the peer has got in part.
    pub(super) begun: &'a [u8],
}

impl<'a> Parting<'a> {
    pub(super) fn read(fields: Fields<'a>) -> Option<Parting<'a>> {
        let first = || fields.each().find(|(tag, _)| matches!(*tag, tag::UNSENT | tag::SHARED));
        let rest = || {
            let sent = usize::try_from(fields.number(tag::SENT).filter(|sent| *sent > 0)?).ok()?;
            first()?.1.get(sent..)
        };
        let begun = fields.bytes(tag::BEGUN).filter(|begun| !begun.is_empty());
        Some(Parting {
            protocol: fields.number(tag::PROTOCOL).and_then(protocol_of)?,
            has_tls: fields.bytes(tag::TLS).is_some(),
            begun: begun.or_else(rest).unwrap_or_default(),
        })
    }
}

impl SavedClient {
    /// The bytes, with the keys of the connection in one place only.
    pub(crate) fn to_bytes(&self) -> SecretBytes {
        let mut out = self.write();
        if let Some(tls) = &self.tls {
            out.secret(tag::TLS, tls);
        }
        out.end().into()
    }

    /// Everything but the keys.
    fn write(&self) -> Writer {
        let mut out = Writer::begin();
        out.number(tag::PROTOCOL, protocol_number(self.protocol));
        if let Some(deflate) = self.deflate {
            out.bytes(tag::DEFLATE, &deflate_bytes(deflate));
        }
        out.number(tag::ORIGIN, self.origin.into());
        if let Some(peer) = self.peer {
            out.bytes(tag::PEER, &peer_bytes(peer));
        }
        if let Owner::Network(network) = self.owner {
            out.number(tag::NETWORK, network);
        }
        if let Some(flow) = self.flow {
            out.number(tag::FLOW, flow);
        }
        let parts = [
            (tag::DECODER, self.decoder.as_deref()),
            (tag::UNDECODED, Some(&self.undecoded[..])),
            (tag::BEGUN, Some(&self.begun[..])),
            (tag::APPLICATION, self.application.as_deref()),
        ];
        for (tag, part) in parts {
            part.into_iter().for_each(|part| out.bytes(tag, part));
        }
        for unsent in &self.unsent {
            match unsent {
                Unsent::Own(bytes) => out.bytes(tag::UNSENT, bytes),
                Unsent::Shared(form) => out.bytes(tag::SHARED, form.bytes()),
            }
        }
        out.number(tag::SENT, self.sent);
        out.number(tag::PAST, self.past);
        out.number(tag::WANTED, self.wanted);
        out.number(tag::OWES_DRAINED, self.owes_drained.into());
        out.number(tag::PERIOD, self.silence.period.into());
        out.number(tag::HEARD, self.silence.heard);
        out.number(tag::PINGED, self.silence.pinged);
        out.bytes(tag::CUT, &self.cut.to_bytes());
        out.number(tag::SCOREBOARD, self.memory.scoreboard);
        out.number(tag::HISTORY, self.memory.history);
        out.number(tag::GENERATION, self.generation);
        out.number(tag::LEFT, self.left.to_number());
        self.subscriptions.write(&mut out);
        for (id, channel, message) in &self.published {
            out.group(tag::PUBLISHED, |out| {
                out.number(inner::ID, *id);
                out.bytes(inner::TEXT, channel);
                out.bytes(inner::MESSAGE, message);
            });
        }
        for (is_text, message) in &self.messages {
            out.group(tag::MESSAGE, |out| {
                out.number(inner::KIND, (*is_text).into());
                out.bytes(inner::MESSAGE, message);
            });
        }
        out
    }

    /// # Errors
    /// If the bytes are of another version, or invalid.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<SavedClient, Unreadable> {
        let fields = Fields::open(bytes)?;
        SavedClient::read(fields)?.ok_or(Unreadable::Invalid)
    }

    fn read(fields: Fields<'_>) -> Result<Option<SavedClient>, Unreadable> {
        let part = |tag| fields.bytes(tag).map(<[u8]>::to_vec);
        let Some(protocol) = fields.number(tag::PROTOCOL).and_then(protocol_of) else {
            return Ok(None);
        };
        let Some(cut) = fields.bytes(tag::CUT).and_then(Cut::from_bytes) else {
            return Ok(None);
        };
        let published = fields.all(tag::PUBLISHED).map(|bytes| {
            let fields = Fields::inside(bytes)?;
            let message = || {
                Some((
                    fields.number(inner::ID)?,
                    fields.bytes(inner::TEXT)?,
                    fields.bytes(inner::MESSAGE)?,
                ))
            };
            let (id, channel, message) = message().ok_or(Unreadable::Invalid)?;
            Ok((id, channel.into(), message.into()))
        });
        let unsent = fields.each().filter_map(|(tag, bytes)| match tag {
            tag::UNSENT => Some(Unsent::Own(bytes.to_vec())),
            tag::SHARED => Some(Unsent::Shared(Arc::new(WireForm::new(bytes)))),
            _ => None,
        });
        let messages = fields.all(tag::MESSAGE).map(|bytes| {
            let fields = Fields::inside(bytes)?;
            let message = || Some((fields.number(inner::KIND)? == 1, fields.bytes(inner::MESSAGE)?.to_vec()));
            message().ok_or(Unreadable::Invalid)
        });
        Ok(Some(SavedClient {
            protocol,
            deflate: fields.bytes(tag::DEFLATE).map(deflate_of).transpose()?,
            origin: fields.number(tag::ORIGIN).unwrap_or_default() as u32,
            peer: fields.bytes(tag::PEER).map(peer_of).transpose()?,
            tls: part(tag::TLS).map(SecretBytes::from),
            // A client without a network gets the key that it has in its new process.
            owner: fields.number(tag::NETWORK).map_or(Owner::Key(0), Owner::Network),
            flow: fields.number(tag::FLOW),
            decoder: part(tag::DECODER),
            undecoded: part(tag::UNDECODED).unwrap_or_default(),
            begun: part(tag::BEGUN).unwrap_or_default(),
            sent: fields.number(tag::SENT).unwrap_or_default(),
            unsent: unsent.collect(),
            past: fields.number(tag::PAST).unwrap_or_default(),
            wanted: fields.number(tag::WANTED).unwrap_or(u64::from(u8::MAX)),
            owes_drained: fields.number(tag::OWES_DRAINED) == Some(1),
            silence: SavedSilence {
                period: fields.number(tag::PERIOD).unwrap_or_default() as u32,
                heard: fields.number(tag::HEARD).unwrap_or_default(),
                pinged: fields.number(tag::PINGED).unwrap_or_default(),
            },
            cut: Arc::new(cut),
            memory: SharedMemory {
                scoreboard: fields.number(tag::SCOREBOARD).unwrap_or_default(),
                history: fields.number(tag::HISTORY).unwrap_or_default(),
            },
            generation: fields.number(tag::GENERATION).unwrap_or_default(),
            left: Millis::from_number(fields.number(tag::LEFT).unwrap_or_default()),
            subscriptions: SavedSubscriptions::read(fields)?,
            published: published.collect::<Result<_, Unreadable>>()?,
            messages: messages.collect::<Result<_, Unreadable>>()?,
            application: part(tag::APPLICATION),
        }))
    }
}
