//! The state of a client that migrates, as a value, and as bytes in `format.rs`.

use super::format::{Fields, Unreadable, Writer};
use crate::clock::Millis;
use crate::limits::holders::Owner;
use crate::pubsub::{Cut, Delivery, Match, PagePosition, Position, WireForm};
use crate::realtime::cable::{SavedQuestion, SavedReceipts, StreamOptions, StreamStart};
use crate::realtime::client::Protocol;
use crate::realtime::frames::Unsent;
use fairlead_tls_record::SecretBytes;
use fairlead_wire::websocket::Deflate;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::sync::Arc;

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

/// The subscriptions of a client.
#[derive(Clone, Debug, Default)]
pub(in crate::realtime) struct SavedSubscriptions {
    pub(in crate::realtime) names: Vec<SavedName>,
    pub(in crate::realtime) streams: Vec<SavedStream>,
    /// The client gets the pings of Action Cable.
    pub(in crate::realtime) has_pings: bool,
    pub(in crate::realtime) receipts: SavedReceipts,
}

/// A subscription to a channel or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::realtime) struct SavedName {
    pub(in crate::realtime) text: Box<[u8]>,
    pub(in crate::realtime) kind: Match,
    pub(in crate::realtime) delivery: Delivery,
    /// The number of its events; 0 if it never had a block.
    pub(in crate::realtime) id: u64,
}

/// A stream.
#[derive(Clone, Debug)]
pub(in crate::realtime) struct SavedStream {
    pub(in crate::realtime) channel: Box<[u8]>,
    pub(in crate::realtime) identifier: Option<Box<str>>,
    pub(in crate::realtime) options: StreamOptions,
    /// Messages of the history up to this offset are not delivered.
    pub(in crate::realtime) after: u64,
}

/// Tags of fields. A tag is never used again for another meaning.
mod tag {
    pub(super) const PROTOCOL: u16 = 1;
    pub(super) const DEFLATE: u16 = 2;
    pub(super) const ORIGIN: u16 = 3;
    pub(super) const PEER: u16 = 4;
    pub(super) const TLS: u16 = 5;
    pub(super) const NETWORK: u16 = 6;
    pub(super) const FLOW: u16 = 7;
    pub(super) const DECODER: u16 = 8;
    pub(super) const UNDECODED: u16 = 9;
    pub(super) const UNSENT: u16 = 10;
    pub(super) const OWES_DRAINED: u16 = 11;
    pub(super) const PERIOD: u16 = 12;
    pub(super) const HEARD: u16 = 13;
    pub(super) const PINGED: u16 = 14;
    pub(super) const CUT: u16 = 15;
    pub(super) const NAME: u16 = 16;
    pub(super) const STREAM: u16 = 17;
    pub(super) const PINGS: u16 = 18;
    pub(super) const PAGE: u16 = 19;
    pub(super) const QUESTION: u16 = 20;
    pub(super) const LAST_QUESTION: u16 = 21;
    pub(super) const PUBLISHED: u16 = 22;
    pub(super) const APPLICATION: u16 = 23;
    pub(super) const LEFT: u16 = 24;
    pub(super) const MESSAGE: u16 = 25;
    pub(super) const BEGUN: u16 = 26;
    pub(super) const PAST: u16 = 27;
    /// In order with `UNSENT`.
    pub(super) const SHARED: u16 = 28;
    pub(super) const WANTED: u16 = 29;
    pub(super) const SENT: u16 = 30;
}

/// Tags inside of a name, a stream, a page, a question or a message.
mod inner {
    pub(super) const TEXT: u16 = 1;
    pub(super) const KIND: u16 = 2;
    pub(super) const DELIVERY: u16 = 3;
    pub(super) const ID: u16 = 4;
    pub(super) const IDENTIFIER: u16 = 5;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const AFTER: u16 = 7;
    pub(super) const EPOCH: u16 = 8;
    pub(super) const OFFSET: u16 = 9;
    pub(super) const PAGE: u16 = 10;
    pub(super) const MADE: u16 = 11;
    pub(super) const SENT: u16 = 12;
    pub(super) const ASKED: u16 = 13;
    pub(super) const MESSAGE: u16 = 14;
    pub(super) const QUESTION: u16 = 15;
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
        let numbers = [(tag::FLOW, self.flow)];
        for (tag, number) in numbers {
            number.into_iter().for_each(|number| out.number(tag, number));
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
        Ok(Some(
            SavedClient {
                protocol,
                deflate: fields.bytes(tag::DEFLATE).map(deflate_of).transpose()?,
                origin: fields.number(tag::ORIGIN).unwrap_or_default() as u32,
                peer: fields.bytes(tag::PEER).map(peer_of).transpose()?,
                tls: part(tag::TLS).map(SecretBytes::from),
                owner: Owner::Network(fields.number(tag::NETWORK).unwrap_or_default()),
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
                left: Millis::from_number(fields.number(tag::LEFT).unwrap_or_default()),
                subscriptions: SavedSubscriptions::read(fields)?,
                published: published.collect::<Result<_, Unreadable>>()?,
                messages: messages.collect::<Result<_, Unreadable>>()?,
                application: part(tag::APPLICATION),
            }
            .with_owner(fields.number(tag::NETWORK)),
        ))
    }

    /// A client without a network gets the key that it has in its new process.
    fn with_owner(self, network: Option<u64>) -> SavedClient {
        let owner = network.map_or(Owner::Key(0), Owner::Network);
        SavedClient { owner, ..self }
    }
}

impl SavedSubscriptions {
    fn write(&self, out: &mut Writer) {
        for name in &self.names {
            out.group(tag::NAME, |out| {
                out.bytes(inner::TEXT, &name.text);
                out.number(inner::KIND, kind_number(name.kind));
                out.number(inner::ID, name.id);
                let (number, id) = delivery_numbers(name.delivery);
                out.number(inner::DELIVERY, number);
                out.number(inner::ASKED, id);
            });
        }
        for stream in &self.streams {
            out.group(tag::STREAM, |out| stream.write(out));
        }
        out.number(tag::PINGS, self.has_pings.into());
        write_receipts(&self.receipts, out);
    }

    fn read(fields: Fields<'_>) -> Result<SavedSubscriptions, Unreadable> {
        let names = fields.all(tag::NAME).map(|bytes| {
            let fields = Fields::inside(bytes)?;
            SavedName::read(fields).ok_or(Unreadable::Invalid)
        });
        let streams = fields.all(tag::STREAM).map(|bytes| {
            let fields = Fields::inside(bytes)?;
            SavedStream::read(fields).ok_or(Unreadable::Invalid)
        });
        Ok(SavedSubscriptions {
            names: names.collect::<Result<_, _>>()?,
            streams: streams.collect::<Result<_, _>>()?,
            has_pings: fields.number(tag::PINGS) == Some(1),
            receipts: read_receipts(fields)?,
        })
    }
}

impl SavedName {
    fn read(fields: Fields<'_>) -> Option<SavedName> {
        let id = fields.number(inner::ASKED)?;
        Some(SavedName {
            text: fields.bytes(inner::TEXT)?.into(),
            kind: kind_of(fields.number(inner::KIND)?)?,
            delivery: delivery_of(fields.number(inner::DELIVERY)?, id)?,
            id: fields.number(inner::ID)?,
        })
    }
}

impl SavedStream {
    fn write(&self, out: &mut Writer) {
        out.bytes(inner::TEXT, &self.channel);
        if let Some(identifier) = &self.identifier {
            out.bytes(inner::IDENTIFIER, identifier.as_bytes());
        }
        let options = self.options;
        let flags = [options.extended, options.confirmed, options.is_whole, options.is_text];
        let bits = flags.iter().enumerate().map(|(bit, flag)| u64::from(*flag) << bit);
        out.number(inner::FLAGS, bits.sum());
        out.number(inner::AFTER, self.after);
        if let Some(StreamStart::Page(page)) = options.since {
            out.number(inner::EPOCH, page.position.epoch);
            out.number(inner::OFFSET, page.position.offset);
            out.number(inner::PAGE, page.page);
            out.number(inner::MADE, page.made);
        }
    }

    fn read(fields: Fields<'_>) -> Option<SavedStream> {
        let flags = fields.number(inner::FLAGS)?;
        let identifier = fields.bytes(inner::IDENTIFIER).map(std::str::from_utf8);
        let page = || {
            Some(StreamStart::Page(PagePosition {
                position: Position {
                    epoch: fields.number(inner::EPOCH)?,
                    offset: fields.number(inner::OFFSET)?,
                },
                page: fields.number(inner::PAGE)?,
                made: fields.number(inner::MADE)?,
            }))
        };
        Some(SavedStream {
            channel: fields.bytes(inner::TEXT)?.into(),
            identifier: identifier.transpose().ok()?.map(Box::from),
            options: StreamOptions {
                since: page(),
                extended: flags & 1 != 0,
                confirmed: flags & 2 != 0,
                is_whole: flags & 4 != 0,
                is_text: flags & 8 != 0,
            },
            after: fields.number(inner::AFTER)?,
        })
    }
}

fn write_receipts(receipts: &SavedReceipts, out: &mut Writer) {
    for [number, sent, asked] in &receipts.pages {
        out.group(tag::PAGE, |out| {
            out.number(inner::PAGE, *number);
            out.number(inner::SENT, *sent);
            out.number(inner::ASKED, *asked);
        });
    }
    for question in &receipts.questions {
        out.group(tag::QUESTION, |out| {
            out.number(inner::QUESTION, question.question);
            out.number(inner::PAGE, question.page);
            out.number(inner::OFFSET, question.offset);
        });
    }
    out.number(tag::LAST_QUESTION, receipts.last_question);
}

fn read_receipts(fields: Fields<'_>) -> Result<SavedReceipts, Unreadable> {
    let page = |bytes| {
        let fields = Fields::inside(bytes)?;
        let page = || {
            Some([
                fields.number(inner::PAGE)?,
                fields.number(inner::SENT)?,
                fields.number(inner::ASKED)?,
            ])
        };
        page().ok_or(Unreadable::Invalid)
    };
    let question = |bytes| {
        let fields = Fields::inside(bytes)?;
        let question = || {
            Some(SavedQuestion {
                question: fields.number(inner::QUESTION)?,
                page: fields.number(inner::PAGE)?,
                offset: fields.number(inner::OFFSET)?,
            })
        };
        question().ok_or(Unreadable::Invalid)
    };
    Ok(SavedReceipts {
        pages: fields.all(tag::PAGE).map(page).collect::<Result<_, _>>()?,
        questions: fields.all(tag::QUESTION).map(question).collect::<Result<_, _>>()?,
        last_question: fields.number(tag::LAST_QUESTION).unwrap_or_default(),
    })
}

/// Bodies of responses do not migrate.
fn protocol_number(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::WebSocket => 1,
        Protocol::EventStream { chunked } => 2 + u64::from(chunked),
        Protocol::Stream { chunked } => 4 + u64::from(chunked),
    }
}

fn protocol_of(number: u64) -> Option<Protocol> {
    match number {
        1 => Some(Protocol::WebSocket),
        2 | 3 => Some(Protocol::EventStream { chunked: number == 3 }),
        _ => None,
    }
}

fn kind_number(kind: Match) -> u64 {
    match kind {
        Match::Exact => 0,
        Match::Glob => 1,
        Match::Subject => 2,
    }
}

fn kind_of(number: u64) -> Option<Match> {
    match number {
        0 => Some(Match::Exact),
        1 => Some(Match::Glob),
        2 => Some(Match::Subject),
        _ => None,
    }
}

fn delivery_numbers(delivery: Delivery) -> (u64, u64) {
    match delivery {
        Delivery::Text => (0, 0),
        Delivery::Binary => (1, 0),
        Delivery::Event(id) => (2, id),
    }
}

fn delivery_of(number: u64, id: u64) -> Option<Delivery> {
    match number {
        0 => Some(Delivery::Text),
        1 => Some(Delivery::Binary),
        2 => Some(Delivery::Event(id)),
        _ => None,
    }
}

fn deflate_bytes(deflate: Deflate) -> [u8; 4] {
    [
        u8::from(deflate.server_no_context),
        u8::from(deflate.client_no_context),
        deflate.server_bits,
        deflate.client_bits,
    ]
}

fn deflate_of(bytes: &[u8]) -> Result<Deflate, Unreadable> {
    match bytes {
        [server @ 0..=1, client @ 0..=1, server_bits @ 9..=15, client_bits @ 8..=15] => Ok(Deflate {
            server_no_context: *server == 1,
            client_no_context: *client == 1,
            server_bits: *server_bits,
            client_bits: *client_bits,
        }),
        _ => Err(Unreadable::Invalid),
    }
}

/// The address (4 or 16 bytes), the port and, for IPv6, the scope.
fn peer_bytes(peer: SocketAddr) -> Vec<u8> {
    let mut bytes = match peer.ip() {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    bytes.extend_from_slice(&peer.port().to_le_bytes());
    if let SocketAddr::V6(peer) = peer {
        bytes.extend_from_slice(&peer.scope_id().to_le_bytes());
    }
    bytes
}

fn peer_of(bytes: &[u8]) -> Result<SocketAddr, Unreadable> {
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    if let Ok(bytes) = <&[u8; 6]>::try_from(bytes) {
        let [a, b, c, d, port @ ..] = bytes;
        return Ok(([*a, *b, *c, *d], number(port) as u16).into());
    }
    let (address, rest) = bytes.split_first_chunk::<16>().ok_or(Unreadable::Invalid)?;
    match rest.split_at_checked(2) {
        Some((port, scope)) if scope.len() == 4 => {
            Ok(SocketAddrV6::new((*address).into(), number(port) as u16, 0, number(scope)).into())
        }
        _ => Err(Unreadable::Invalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client with a value in each field.
    fn client() -> SavedClient {
        let page = PagePosition {
            position: Position { epoch: 7, offset: 8 },
            page: 9,
            made: 10,
        };
        let name = |text: &[u8], kind, delivery, id| SavedName {
            text: text.into(),
            kind,
            delivery,
            id,
        };
        SavedClient {
            protocol: Protocol::WebSocket,
            deflate: Some(Deflate {
                server_no_context: true,
                client_no_context: false,
                server_bits: 12,
                client_bits: 15,
            }),
            origin: 0x1234_5678,
            peer: Some(([127, 0, 0, 1], 4711).into()),
            tls: None,
            owner: Owner::Network(11),
            flow: Some(12),
            decoder: Some(b"decoder".to_vec()),
            undecoded: b"undecoded".to_vec(),
            begun: b"rest".to_vec(),
            sent: 3,
            unsent: vec![
                Unsent::Own(b"unsent".to_vec()),
                Unsent::Shared(Arc::new(WireForm::new(*b"shared"))),
                Unsent::Own(b"more".to_vec()),
            ],
            past: 5,
            owes_drained: true,
            wanted: 1,
            silence: SavedSilence {
                period: 40,
                heard: 1_000,
                pinged: 2_000,
            },
            cut: Arc::default(),
            left: Millis::from_number(13),
            subscriptions: SavedSubscriptions {
                names: vec![
                    name(b"news", Match::Exact, Delivery::Text, 0),
                    name(b"n*", Match::Glob, Delivery::Binary, 0),
                    name(b"a.>", Match::Subject, Delivery::Event(3), 3),
                ],
                streams: vec![
                    SavedStream {
                        channel: (*b"room").into(),
                        identifier: Some("{\"channel\":\"Room\"}".into()),
                        options: StreamOptions {
                            since: Some(StreamStart::Page(page)),
                            extended: true,
                            ..StreamOptions::default()
                        },
                        after: 14,
                    },
                    SavedStream {
                        channel: (*b"plain").into(),
                        identifier: None,
                        options: StreamOptions {
                            is_text: true,
                            ..StreamOptions::default()
                        },
                        after: 0,
                    },
                ],
                has_pings: true,
                receipts: SavedReceipts {
                    pages: vec![[9, 20, 19]],
                    questions: vec![SavedQuestion {
                        question: 2,
                        page: 9,
                        offset: 19,
                    }],
                    last_question: 2,
                },
            },
            published: vec![(3, (*b"a.b").into(), (*b"message").into())],
            messages: vec![(true, b"text".to_vec()), (false, Vec::new())],
            application: Some(b"state of the app".to_vec()),
        }
    }

    #[test]
    fn a_client_is_the_same_after_its_way() {
        let client = client();
        let bytes = client.to_bytes();
        let read = SavedClient::from_bytes(&bytes).expect("the same version");
        assert_eq!(format!("{read:?}"), format!("{client:?}"));
        for length in 0..bytes.len() {
            let _ = SavedClient::from_bytes(&bytes[..length]);
        }
    }

    #[test]
    fn a_client_without_anything_is_the_same_after_its_way() {
        let empty = SavedClient {
            protocol: Protocol::EventStream { chunked: true },
            deflate: None,
            peer: Some("[fe80::1%3]:80".parse().expect("an address")),
            owner: Owner::Key(0),
            flow: None,
            decoder: None,
            subscriptions: SavedSubscriptions::default(),
            published: Vec::new(),
            messages: Vec::new(),
            application: None,
            ..client()
        };
        let read = SavedClient::from_bytes(&empty.to_bytes()).expect("the same version");
        assert_eq!(format!("{read:?}"), format!("{empty:?}"));
    }

    /// A client that version 1 of the format has written. Later versions of the server must read it as long as the version of the
    /// format is the same: fields are only added.
    #[test]
    fn the_sample_of_version_1_is_read() {
        let sample = include_bytes!("samples/client-1.bin");
        let read = SavedClient::from_bytes(sample).expect("version 1");
        assert_eq!(format!("{read:?}"), format!("{:?}", client()));
    }

    #[test]
    fn invalid_values_are_refused() {
        let refused = |tag: u16, bytes: &[u8]| {
            let mut out = Writer::begin();
            out.bytes(tag, bytes);
            let changed = [out.end(), client().to_bytes()[6..].to_vec()].concat();
            SavedClient::from_bytes(&changed).err() == Some(Unreadable::Invalid)
        };
        assert!(refused(tag::PROTOCOL, &[9, 0, 0, 0, 0, 0, 0, 0]), "no such protocol");
        assert!(refused(tag::PROTOCOL, &[1]), "no number");
        assert!(refused(tag::DEFLATE, &[1, 1, 16, 15]), "too large a window");
        assert!(refused(tag::PEER, &[127, 0, 0, 1]), "no port");
        assert!(refused(tag::CUT, b"no cut"));
        assert!(refused(tag::NAME, b"no fields"));
        assert!(refused(tag::STREAM, &[]), "no channel");
        assert!(!refused(999, b"of a later version"));
    }
}
