//! The subscriptions of a client that migrates, and the receipts of its pages.

use super::values::{delivery_numbers, delivery_of, kind_number, kind_of};
use super::{inner, tag};
use crate::pubsub::{Delivery, Match, PagePosition, Position};
use crate::realtime::cable::{SavedQuestion, SavedReceipts, StreamOptions, StreamStart};
use crate::realtime::migration::format::{Fields, Unreadable, Writer};

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

impl SavedSubscriptions {
    pub(super) fn write(&self, out: &mut Writer) {
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

    pub(super) fn read(fields: Fields<'_>) -> Result<SavedSubscriptions, Unreadable> {
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
