//! One published message, and its encoded forms: each is made once, for the first subscriber that needs it.

use super::history::Position;
use super::publication_id::PublicationId;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Number of wire forms of a publication. The subscribers agree on the meaning of each index.
pub const ENCODINGS: usize = 8;

/// A wire form, shared by all subscribers that have not sent it yet.
pub struct WireForm {
    bytes: Box<[u8]>,
    receipt: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl WireForm {
    /// A form with these bytes.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> WireForm {
        WireForm {
            bytes: bytes.into(),
            receipt: OnceLock::new(),
        }
    }

    /// The bytes to send.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the return value of `count` for as long as the bytes are in memory: the first subscriber that has to wait
    /// for its peer counts them for all subscribers.
    pub fn count_once(&self, count: impl FnOnce() -> Box<dyn Any + Send + Sync>) {
        self.receipt.get_or_init(count);
    }
}

impl fmt::Debug for WireForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireForm")
            .field("bytes", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// A message for the subscribers of a channel.
pub struct Publication {
    /// The channel that it was published to.
    pub channel: Arc<[u8]>,
    /// The message.
    pub message: Arc<[u8]>,
    /// Its position, if it is in the history: after it, and before the next message.
    pub position: Option<Position>,
    pub(super) origin: Origin,
    encodings: [OnceLock<Arc<WireForm>>; ENCODINGS],
    derived: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// The way that a publication has come, by which each process knows it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Origin {
    /// It is for this process alone.
    Process,
    /// Its sender has sent it to all processes.
    Sent(PublicationId),
    /// This process has sent it to the others; its own subscribers do not get it.
    SentToOthers(PublicationId),
    /// It is in the history, at this place.
    Kept(u64),
}

impl Publication {
    /// A publication for this process, without wire forms.
    pub fn new(channel: impl Into<Arc<[u8]>>, message: impl Into<Arc<[u8]>>) -> Publication {
        Publication {
            channel: channel.into(),
            message: message.into(),
            position: None,
            origin: Origin::Process,
            encodings: Default::default(),
            derived: OnceLock::new(),
        }
    }

    /// A publication that its sender has sent to all processes.
    pub(super) fn sent(channel: impl Into<Arc<[u8]>>, message: impl Into<Arc<[u8]>>, id: PublicationId) -> Publication {
        Publication {
            origin: Origin::Sent(id),
            ..Publication::new(channel, message)
        }
    }

    /// A publication of this process. `id`: if other processes get it, too. `is_for_others`: only those.
    pub(super) fn of(channel: &[u8], message: &[u8], id: Option<PublicationId>, is_for_others: bool) -> Publication {
        let origin = match id {
            Some(id) if is_for_others => Origin::SentToOthers(id),
            Some(id) => Origin::Sent(id),
            None => Origin::Process,
        };
        Publication {
            origin,
            ..Publication::new(channel, message)
        }
    }

    /// A publication from the history, and its place there.
    pub(super) fn kept(channel: Arc<[u8]>, message: Arc<[u8]>, position: Position, place: u64) -> Publication {
        Publication {
            position: Some(position),
            origin: Origin::Kept(place),
            ..Publication::new(channel, message)
        }
    }

    /// Its id, if its sender has sent it to other processes.
    pub fn id(&self) -> Option<PublicationId> {
        match self.origin {
            Origin::Sent(id) | Origin::SentToOthers(id) => Some(id),
            Origin::Process | Origin::Kept(_) => None,
        }
    }

    /// A value that the first subscriber that needs it makes from the message. All subscribers use the same type.
    ///
    /// # Panics
    /// If they do not.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&[u8]) -> T) -> &T {
        let derived = self.derived.get_or_init(|| Box::new(make(&self.message)));
        derived.downcast_ref().expect("one type for all subscribers")
    }

    /// Wire form number `index`. `make` makes it from the message when it is first needed.
    ///
    /// # Panics
    /// If `index` is not below [`ENCODINGS`].
    pub fn encoded(&self, index: usize, make: impl FnOnce(&[u8]) -> Vec<u8>) -> &Arc<WireForm> {
        self.encodings[index].get_or_init(|| Arc::new(WireForm::new(make(&self.message))))
    }
}

/// Bytes that can be filled while nobody shares them.
pub(super) fn zeros(length: usize) -> Arc<[u8]> {
    std::iter::repeat_n(0, length).collect()
}

impl fmt::Debug for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publication")
            .field("channel", &self.channel.escape_ascii().to_string())
            .field("bytes", &self.message.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wire_form_is_made_once() {
        let publication = Publication::new(*b"news", *b"hello");
        let mut made = 0;
        for _ in 0..3 {
            let bytes = publication.encoded(5, |message| {
                made += 1;
                message.to_ascii_uppercase()
            });
            assert_eq!(bytes.bytes(), b"HELLO");
        }
        assert_eq!(made, 1);
        assert_eq!(publication.encoded(0, <[u8]>::to_vec).bytes(), b"hello");
    }
}
