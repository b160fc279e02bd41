//! The ways in which requests fail, with their names in reports.

/// Why a request got no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Connect,
    Tls,
    Read,
    Write,
    Timeout,
    Closed,
    Malformed,
    /// The server reset the stream…
    Reset,
    /// …before it processed the request: RST_STREAM with REFUSED_STREAM.
    Refused,
    /// GOAWAY with an error code.
    GoAway,
}

impl Failure {
    pub(crate) const ALL: [Failure; 10] = [
        Failure::Connect,
        Failure::Tls,
        Failure::Read,
        Failure::Write,
        Failure::Timeout,
        Failure::Closed,
        Failure::Malformed,
        Failure::Reset,
        Failure::Refused,
        Failure::GoAway,
    ];

    /// The key in the JSON document.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Failure::Connect => "connect",
            Failure::Tls => "tls",
            Failure::Read => "read",
            Failure::Write => "write",
            Failure::Timeout => "timeout",
            Failure::Closed => "closed",
            Failure::Malformed => "malformed",
            Failure::Reset => "reset",
            Failure::Refused => "refused",
            Failure::GoAway => "goaway",
        }
    }

    /// The words in the text report.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Failure::Connect => "could not connect",
            Failure::Tls => "TLS failed",
            Failure::Read => "read failed",
            Failure::Write => "write failed",
            Failure::Timeout => "timed out",
            Failure::Closed => "closed before the response was complete",
            Failure::Malformed => "not an HTTP response",
            Failure::Reset => "stream reset",
            Failure::Refused => "stream refused",
            Failure::GoAway => "ended by GOAWAY",
        }
    }
}
