//! Violations by the peer, and the alerts that tell it of them.

/// An alert (RFC 8446 §6): its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alert {
    /// The sender sends nothing more.
    CloseNotify = 0,
    /// A message is not expected now.
    UnexpectedMessage = 10,
    /// A record cannot be decrypted.
    BadRecordMac = 20,
    /// A record is too long.
    RecordOverflow = 22,
    /// A field has an impossible value.
    IllegalParameter = 47,
    /// A message is malformed.
    DecodeError = 50,
    /// No new handshake begins on this connection (TLS 1.2).
    NoRenegotiation = 100,
}

/// A violation of the protocol by the peer: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The type of a record is unknown.
    UnknownType,
    /// The version of a record is unknown.
    UnknownVersion,
    /// A record without contents that needs some.
    Empty,
    /// A record is longer than any may be.
    TooLong,
    /// A record cannot be decrypted.
    BadRecordMac,
    /// The data of a record is too long.
    Overflow,
    /// A record of TLS 1.3 consists of padding only.
    OnlyPadding,
    /// A message for the handshake.
    ChangeCipherSpec,
    /// The same, malformed.
    MalformedChangeCipherSpec,
    /// A record of another type between the parts of a handshake message.
    Interleaved,
    /// Too many empty records in a row.
    TooManyEmpty,
    /// An alert is malformed.
    MalformedAlert,
    /// The level of an alert is unknown.
    UnknownAlertLevel,
    /// A warning, which TLS 1.3 does not have.
    Warning,
    /// Too many warnings.
    TooManyWarnings,
    /// A handshake message that a server does not receive now.
    UnexpectedHandshake,
    /// A handshake message is too long.
    HandshakeTooLong,
    /// A key update is malformed.
    MalformedKeyUpdate,
    /// A key update with an unknown request.
    UnknownKeyUpdate,
    /// A key update is followed by another message in its record.
    KeyUpdateNotLast,
    /// Too many key updates without data.
    TooManyKeyUpdates,
    /// Another attempt to begin a new handshake.
    TooManyRenegotiations,
    /// The peer has sent a fatal alert, with this description.
    Alerted(u8),
}

impl Violation {
    /// The alert for the peer; `None` if it has given up itself. As in rustls, which sends none for some violations: these
    /// get `unexpected_message`.
    pub fn alert(self) -> Option<Alert> {
        Some(match self {
            Violation::BadRecordMac => Alert::BadRecordMac,
            Violation::Overflow => Alert::RecordOverflow,
            Violation::UnknownAlertLevel | Violation::UnknownKeyUpdate => Alert::IllegalParameter,
            Violation::UnknownType
            | Violation::UnknownVersion
            | Violation::Empty
            | Violation::TooLong
            | Violation::MalformedChangeCipherSpec
            | Violation::MalformedAlert
            | Violation::Warning
            | Violation::HandshakeTooLong
            | Violation::MalformedKeyUpdate => Alert::DecodeError,
            Violation::OnlyPadding
            | Violation::ChangeCipherSpec
            | Violation::Interleaved
            | Violation::TooManyEmpty
            | Violation::TooManyWarnings
            | Violation::UnexpectedHandshake
            | Violation::KeyUpdateNotLast
            | Violation::TooManyKeyUpdates
            | Violation::TooManyRenegotiations => Alert::UnexpectedMessage,
            Violation::Alerted(_) => return None,
        })
    }
}
