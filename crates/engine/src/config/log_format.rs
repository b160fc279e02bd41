//! Format of access lines, parsed: text and directives. The directives are from Apache's `LogFormat`, as far as they
//! apply, `%{…}W` for the waiting times of a request, and `%{trace_id}x`.

use std::str::FromStr;

/// Format of the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line of text for each response.
    Text(Vec<Piece>),
    /// One JSON object per line.
    Json,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Constant text.
    Literal(String),
    /// `%h`, `%a`: the client's address.
    Host,
    /// `%{c}a`, `%{c}h`: the address of the connection's peer.
    Peer,
    /// `%t`: the time, in brackets.
    Time,
    /// `%r`: method, target and version.
    RequestLine,
    /// `%m`
    Method,
    /// `%U`: the target without the query.
    Path,
    /// `%q`: the query with its `?`; empty if there is none.
    Query,
    /// `%H`: the version.
    Protocol,
    /// `%s`, `%>s`
    Status,
    /// `%B`: bytes of the body; `%b`: the same with `-` for none.
    Bytes {
        /// True if 0 is written as `-`.
        dash: bool,
    },
    /// `%T`, `%D` and similar: time from the complete request to the end of the response.
    Took(Unit),
    /// `%P`: the process id.
    Process,
    /// `%{Name}i`: a field of the request, `-` if there is none.
    Field(Vec<u8>),
    /// `%{name}W`: a waiting time, in seconds.
    Wait(Wait),
    /// `%{trace_id}x`: the trace of the request, `-` if there is none.
    TraceId,
}

/// Unit and form of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// `%{seconds}T`: with four digits after the point.
    Fraction,
    /// `%T`, `%{s}T`: whole seconds.
    Seconds,
    /// `%{ms}T`
    Milliseconds,
    /// `%D`, `%{us}T`
    Microseconds,
}

/// Kinds of waiting time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// `queue_time`: a thread.
    Queue,
    /// `waiting_room_time`: a thread of any worker.
    WaitingRoom,
    /// `lock_wait`: the lock of the language.
    Lock,
}

const COMMON: &str = "%h - - %t \"%r\" %s %B %{seconds}T";
const COMBINED: &str = "%h - - %t \"%r\" %s %B \"%{Referer}i\" \"%{User-Agent}i\" %{seconds}T";

/// Parses `common`, `combined`, `json`, or text with directives.
impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Format, ()> {
        match text {
            "json" => Ok(Format::Json),
            "common" => pieces(COMMON).map(Format::Text),
            "combined" => pieces(COMBINED).map(Format::Text),
            text => pieces(text).map(Format::Text),
        }
    }
}

fn pieces(mut text: &str) -> Result<Vec<Piece>, ()> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    while let Some((before, rest)) = text.split_once('%') {
        literal.push_str(before);
        if let Some(rest) = rest.strip_prefix('%') {
            literal.push('%');
            text = rest;
            continue;
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        let (name, rest) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}').map(|(name, rest)| (Some(name), rest)).ok_or(())?,
            None => (
                None,
                rest.strip_prefix('>')
                    .filter(|rest| rest.starts_with('s'))
                    .unwrap_or(rest),
            ),
        };
        let letter = rest.chars().next().ok_or(())?;
        pieces.push(directive(name, letter)?);
        text = &rest[letter.len_utf8()..];
    }
    literal.push_str(text);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

fn directive(name: Option<&str>, letter: char) -> Result<Piece, ()> {
    Ok(match (name, letter) {
        (None, 'h' | 'a') => Piece::Host,
        (Some("c"), 'h' | 'a') => Piece::Peer,
        (None, 'l' | 'u') => Piece::Literal("-".into()),
        (None, 't') => Piece::Time,
        (None, 'r') => Piece::RequestLine,
        (None, 'm') => Piece::Method,
        (None, 'U') => Piece::Path,
        (None, 'q') => Piece::Query,
        (None, 'H') => Piece::Protocol,
        (None, 's') => Piece::Status,
        (None, 'B') => Piece::Bytes { dash: false },
        (None, 'b') => Piece::Bytes { dash: true },
        (None, 'P') => Piece::Process,
        (Some("seconds"), 'T') => Piece::Took(Unit::Fraction),
        (None, 'T') | (Some("s"), 'T') => Piece::Took(Unit::Seconds),
        (Some("ms"), 'T') => Piece::Took(Unit::Milliseconds),
        (None, 'D') | (Some("us"), 'T') => Piece::Took(Unit::Microseconds),
        (Some(name), 'i') if !name.is_empty() => Piece::Field(name.as_bytes().to_vec()),
        (Some("queue_time"), 'W') => Piece::Wait(Wait::Queue),
        (Some("waiting_room_time"), 'W') => Piece::Wait(Wait::WaitingRoom),
        (Some("lock_wait"), 'W') => Piece::Wait(Wait::Lock),
        (Some("trace_id"), 'x') => Piece::TraceId,
        _ => return Err(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Piece {
        Piece::Literal(text.into())
    }

    #[test]
    fn text_and_directives_keep_their_order() {
        let expected = vec![
            literal("a "),
            Piece::Status,
            literal(" 100% "),
            Piece::Status,
            Piece::Field(b"X-A".to_vec()),
            literal("}"),
            Piece::Host,
            Piece::Peer,
            Piece::Wait(Wait::Lock),
            Piece::TraceId,
            literal("é"),
        ];
        assert_eq!(
            "a %s 100%% %>s%{X-A}i}%a%{c}a%{lock_wait}W%{trace_id}xé".parse(),
            Ok(Format::Text(expected))
        );
        assert_eq!("".parse(), Ok(Format::Text(Vec::new())));
    }

    #[test]
    fn what_is_no_directive_is_an_error() {
        for text in [
            "%",
            "a %",
            "%z",
            "%é",
            "%{",
            "%{a",
            "%{a}",
            "%{a}T",
            "%{}i",
            "%{total}W",
            "%W",
            "%{d}a",
            "%{c}s",
            "%i",
            "%>b",
            "%>>s",
            "%{s}D",
            "%{trace}x",
            "%x",
        ] {
            assert_eq!(text.parse::<Format>(), Err(()), "{text}");
        }
    }
}
