//! Tags inside of a name, a stream, a page, a question or a message. A tag is never used again for another meaning.

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
