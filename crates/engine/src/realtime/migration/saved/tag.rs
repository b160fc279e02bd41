//! Tags of fields. A tag is never used again for another meaning. Every version writes `PROTOCOL`, `TLS`, `BEGUN`, `SENT` and the first
//! of `UNSENT` and `SHARED` as this one does: see `farewell.rs`.

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
pub(super) const SCOREBOARD: u16 = 31;
pub(super) const HISTORY: u16 = 32;
pub(super) const GENERATION: u16 = 33;
