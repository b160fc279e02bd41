//! Finds the end of a response in a stream of bytes (RFC 9112 §4, §6, §7) and little more: the status, and whether
//! the connection can carry another request.
//!
//! Works line by line as bytes arrive, wherever the reads cut them, and keeps only an unfinished line. Content is
//! counted past, never stored.
//!
//! ```text
//! StatusLine -> Field* -+-> Sized(n) ----------------------------+-> answer
//!      ^                +-> ChunkSize -> Chunk(n) -> ChunkEnd     |
//!      |                |       ^------------------------+        |
//!      |                |       +-> Trailer* ---------------------+
//!      |                +-> UntilClose -- end of stream ----------+
//!      +--- 1xx --------+-> no content ---------------------------+
//! ```

use memchr::memchr;

/// Longest line kept; a server that sends more is not speaking HTTP.
const LINE_BYTES: usize = 64 * 1024;

/// A whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Whether the server leaves the connection open for another request.
    pub(crate) keep_alive: bool,
}

/// What arrived is not an HTTP/1 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Reads the responses of one connection, one after the other.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    state: State,
    head: Head,
    /// Responses to HEAD end with their head, whatever it says.
    to_head: bool,
    line: Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    StatusLine,
    Field,
    Sized(u64),
    UntilClose,
    ChunkSize,
    Chunk(u64),
    ChunkEnd,
    Trailer,
}

#[derive(Clone, Copy, Debug, Default)]
struct Head {
    status: u16,
    keep_alive: bool,
    length: Option<u64>,
    coding: Option<Coding>,
}

/// The last transfer coding of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Chunked,
    Other,
}

impl ResponseReader {
    /// `method` is that of the requests to which the responses belong.
    pub(crate) fn new(method: &str) -> ResponseReader {
        let line = Line::default();
        ResponseReader {
            state: State::StatusLine,
            head: Head::default(),
            to_head: method == "HEAD",
            line,
        }
    }

    /// Forgets an unfinished response: the connection is gone.
    pub(crate) fn reset(&mut self) {
        self.state = State::StatusLine;
        self.line.clear();
    }

    /// Takes from `input` until a response is complete (`Some`) or all is taken (`None`).
    pub(crate) fn read(&mut self, input: &mut &[u8]) -> Result<Option<Answer>, Malformed> {
        loop {
            match self.state {
                State::Sized(left) => match skip(input, left) {
                    0 => return Ok(Some(self.answer())),
                    left => self.state = State::Sized(left),
                },
                State::Chunk(left) => match skip(input, left) {
                    0 => self.state = State::ChunkEnd,
                    left => self.state = State::Chunk(left),
                },
                State::UntilClose => *input = &[],
                State::StatusLine | State::Field | State::ChunkSize | State::ChunkEnd | State::Trailer => {
                    let Some(line) = self.line.take(input)? else {
                        return Ok(None);
                    };
                    match step(self.state, &mut self.head, line, self.to_head)? {
                        Some(state) => self.state = state,
                        None => return Ok(Some(self.answer())),
                    }
                }
            }
            if input.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The server closed the connection: completes a response that ends there.
    pub(crate) fn end(&mut self) -> Option<Answer> {
        (self.state == State::UntilClose).then(|| self.answer())
    }

    fn answer(&mut self) -> Answer {
        self.state = State::StatusLine;
        Answer {
            status: self.head.status,
            keep_alive: self.head.keep_alive,
        }
    }
}

/// One line on: the next state, or `None` when the response is complete.
fn step(state: State, head: &mut Head, line: &[u8], to_head: bool) -> Result<Option<State>, Malformed> {
    let next = match state {
        State::StatusLine => {
            *head = status_line(line)?;
            State::Field
        }
        State::Field if line.is_empty() => return Ok(after_head(head, to_head)),
        State::Field => {
            field(head, line)?;
            State::Field
        }
        State::ChunkSize => match chunk_size(line)? {
            0 => State::Trailer,
            size => State::Chunk(size),
        },
        State::ChunkEnd if line.is_empty() => State::ChunkSize,
        State::ChunkEnd => return Err(Malformed),
        State::Trailer if line.is_empty() => return Ok(None),
        other => other,
    };
    Ok(Some(next))
}

/// RFC 9112 §6.3: what follows the head.
fn after_head(head: &mut Head, to_head: bool) -> Option<State> {
    match head.status {
        // RFC 9112 §9.6 leaves HTTP behind: nothing more to measure on this connection.
        101 => {
            head.keep_alive = false;
            None
        }
        100..=199 => Some(State::StatusLine),
        204 | 304 => None,
        _ if to_head => None,
        _ => match (head.coding, head.length) {
            (Some(Coding::Chunked), _) => Some(State::ChunkSize),
            (None, Some(0)) => None,
            (None, Some(length)) => Some(State::Sized(length)),
            (Some(Coding::Other), _) | (None, None) => {
                head.keep_alive = false;
                Some(State::UntilClose)
            }
        },
    }
}

/// RFC 9112 §4: `HTTP/1.x SSS reason`, as minor version and status; servers often leave out the reason and its space.
pub(crate) fn status(line: &[u8]) -> Result<(u8, u16), Malformed> {
    let rest = line.strip_prefix(b"HTTP/1.").ok_or(Malformed)?;
    let [minor @ b'0'..=b'9', b' ', a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9', reason @ ..] = rest else {
        return Err(Malformed);
    };
    if !matches!(reason, [] | [b' ', ..]) {
        return Err(Malformed);
    }
    let digit = |byte: &u8| u16::from(byte - b'0');
    Ok((minor - b'0', digit(a) * 100 + digit(b) * 10 + digit(c)))
}

fn status_line(line: &[u8]) -> Result<Head, Malformed> {
    let (minor, status) = status(line)?;
    Ok(Head {
        status,
        keep_alive: minor != 0,
        ..Head::default()
    })
}

fn field(head: &mut Head, line: &[u8]) -> Result<(), Malformed> {
    let colon = memchr(b':', line).ok_or(Malformed)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    // Line folding (RFC 9112 §5.2) and white space before the colon (§5.1) both show up as a space in the name.
    if name.is_empty() || name.first() == Some(&b' ') || name.first() == Some(&b'\t') || name.last() == Some(&b' ') {
        return Err(Malformed);
    }
    match name.len() {
        10 if name.eq_ignore_ascii_case(b"connection") => {
            for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                if option.eq_ignore_ascii_case(b"close") {
                    head.keep_alive = false;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    head.keep_alive = true;
                }
            }
        }
        14 if name.eq_ignore_ascii_case(b"content-length") => {
            let length = decimal(value)?;
            if head.length.is_some_and(|earlier| earlier != length) {
                return Err(Malformed);
            }
            head.length = Some(length);
        }
        17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
            let last = value
                .rsplit(|&byte| byte == b',')
                .next()
                .unwrap_or_default()
                .trim_ascii();
            head.coding = Some(if last.eq_ignore_ascii_case(b"chunked") {
                Coding::Chunked
            } else {
                Coding::Other
            });
        }
        _ => {}
    }
    Ok(())
}

pub(crate) fn decimal(text: &[u8]) -> Result<u64, Malformed> {
    if text.is_empty() {
        return Err(Malformed);
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Malformed);
        }
        number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(digit)))
            .ok_or(Malformed)
    })
}

/// RFC 9112 §7.1: hexadecimal, then perhaps extensions, which mean nothing to us.
pub(crate) fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if !(1..=16).contains(&digits) || !matches!(line[digits..], [] | [b';' | b' ' | b'\t', ..]) {
        return Err(Malformed);
    }
    Ok(line[..digits].iter().fold(0, |size, byte| {
        size * 16 + u64::from((*byte as char).to_digit(16).unwrap_or(0))
    }))
}

/// Passes over up to `left` bytes and returns how many are still to come.
fn skip(input: &mut &[u8], left: u64) -> u64 {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len());
    *input = &input[taken..];
    left - taken as u64
}

/// Cuts lines out of the stream; keeps the beginning of one that has not ended yet.
#[derive(Debug, Default)]
pub(crate) struct Line {
    begun: Vec<u8>,
    /// `begun` was handed out whole and starts anew with the next line.
    spent: bool,
}

impl Line {
    fn clear(&mut self) {
        self.begun.clear();
        self.spent = false;
    }

    /// The next line without its end, or `None` when it has not ended in `input`, all of which is then taken.
    pub(crate) fn take<'a, 'b: 'a>(&'a mut self, input: &mut &'b [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        if self.spent {
            self.clear();
        }
        let (line, rest) = match memchr(b'\n', input) {
            Some(end) => (&input[..end], Some(&input[end + 1..])),
            None => (*input, None),
        };
        if self.begun.len() + line.len() > LINE_BYTES {
            return Err(Malformed);
        }
        let Some(rest) = rest else {
            self.begun.extend_from_slice(line);
            *input = &[];
            return Ok(None);
        };
        *input = rest;
        if self.begun.is_empty() {
            return Ok(Some(without_cr(line)));
        }
        self.begun.extend_from_slice(line);
        self.spent = true;
        Ok(Some(without_cr(&self.begun)))
    }
}

/// RFC 9112 §2.2: a single LF may be taken as the end of a line.
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
