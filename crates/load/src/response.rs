//! Finds the end of a response in a stream of bytes (RFC 9112) and little more: the status, and whether the connection
//! can carry another request. Content is counted and not stored.
//!
//! `head` parses its fields, `content` finds the end of its content. This file reads responses one after the other,
//! however the reads split them.

pub(crate) mod content;
pub(crate) mod head;

pub(crate) use head::Malformed;

use content::{Content, Framing};
use head::{Head, HEAD_BYTES};

/// A complete response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The server keeps the connection open for another request.
    pub(crate) keep_alive: bool,
}

/// Reads the responses of one connection, one after the other.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    /// Responses to HEAD end with their head, even if it announces content.
    to_head: bool,
    /// The beginning of an incomplete head.
    begun: Vec<u8>,
    /// The response with content that is still arriving.
    under_way: Option<(Answer, Content)>,
}

impl ResponseReader {
    /// `method` is the method of the requests.
    pub(crate) fn new(method: &str) -> ResponseReader {
        ResponseReader {
            to_head: method == "HEAD",
            begun: Vec::new(),
            under_way: None,
        }
    }

    /// Drops an incomplete response: the connection is gone.
    pub(crate) fn reset(&mut self) {
        self.begun.clear();
        self.under_way = None;
    }

    /// Returns `true` if a part of a response has arrived.
    pub(crate) fn has_begun(&self) -> bool {
        !self.begun.is_empty() || self.under_way.is_some()
    }

    /// Consumes `input` until a response is complete (`Some`) or nothing is left (`None`).
    pub(crate) fn read(&mut self, input: &mut &[u8]) -> Result<Option<Answer>, Malformed> {
        loop {
            if let Some((answer, content)) = &mut self.under_way {
                let answer = *answer;
                if !pass(content, input)? {
                    return Ok(None);
                }
                self.under_way = None;
                return Ok(Some(answer));
            }
            match self.head(input)? {
                None => return Ok(None),
                Some(Next::Whole(answer)) => return Ok(Some(answer)),
                Some(Next::Interim) => {}
                Some(Next::Content(answer, framing)) => self.under_way = Some((answer, Content::new(framing))),
            }
        }
    }

    /// The server closed the connection: completes a response that ends with the connection.
    pub(crate) fn end(&mut self) -> Option<Answer> {
        let (answer, _) = self.under_way.take().filter(|(_, content)| content.may_end())?;
        Some(answer)
    }

    /// Takes a head from `input`, or all of `input` if the head is incomplete.
    fn head(&mut self, input: &mut &[u8]) -> Result<Option<Next>, Malformed> {
        let look = |head: &Head<'_>| Next::after(head, self.to_head);
        let found = if self.begun.is_empty() {
            Head::parse(input, look)?
        } else {
            let before = self.begun.len();
            let more = input.len().min(HEAD_BYTES + 1 - before);
            self.begun.extend_from_slice(&input[..more]);
            Head::parse(&self.begun, look)?.map(|(next, length)| (next, length - before))
        };
        let Some((next, length)) = found else {
            if self.begun.is_empty() {
                self.begun.extend_from_slice(input);
            }
            *input = &[];
            return Ok(None);
        };
        self.begun.clear();
        *input = &input[length..];
        next.map(Some)
    }
}

/// Determines what follows a head.
enum Next {
    Interim,
    Whole(Answer),
    Content(Answer, Framing),
}

impl Next {
    /// RFC 9112 §6.3.
    fn after(head: &Head<'_>, to_head: bool) -> Result<Next, Malformed> {
        let framing = Framing::of(head).map_err(|_| Malformed)?;
        let answer = |keep_alive| Answer {
            status: head.status,
            keep_alive,
        };
        Ok(match (head.status, framing) {
            // RFC 9112 §9.6 leaves HTTP: there is nothing more to measure on this connection.
            (101, _) => Next::Whole(answer(false)),
            (100..=199, _) => Next::Interim,
            (204 | 304, _) | (_, Framing::Sized(0)) => Next::Whole(answer(keeps_alive(head))),
            _ if to_head => Next::Whole(answer(keeps_alive(head))),
            (_, Framing::Sized(_) | Framing::Chunked) => Next::Content(answer(keeps_alive(head)), framing),
            (_, Framing::Coded | Framing::UntilClose) => Next::Content(answer(false), framing),
        })
    }
}

/// RFC 9112 §9.3; the last of several options counts.
fn keeps_alive(head: &Head<'_>) -> bool {
    let said = head.members("connection").rev().find_map(|option| {
        let is = |name| option.eq_ignore_ascii_case(name);
        (is("close") || is("keep-alive")).then(|| is("keep-alive"))
    });
    said.unwrap_or(head.minor_version != 0)
}

/// Skips content; returns `true` if it ends in `input`.
fn pass(content: &mut Content, input: &mut &[u8]) -> Result<bool, Malformed> {
    loop {
        let length = content.stretch(input).map_err(|_| Malformed)?;
        if length == 0 {
            return Ok(content.has_ended());
        }
        content.took(length);
        *input = &input[length..];
    }
}

#[cfg(test)]
mod tests;
