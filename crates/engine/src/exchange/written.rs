//! The head that was written so far, looked at and changed: what is sent in the end may depend on what the app has said first.

use super::Exchange;
use fairlead_wire::reason;
use std::ops::Range;

const LINE_END: &[u8] = b"\r\n";

impl Exchange<'_> {
    /// The first value of a field that has been written; `name` in lower case.
    pub(crate) fn written_field(&self, name: &[u8]) -> Option<&[u8]> {
        let (_, value) = self.find_field(name)?;
        self.connection.output.tail().get(value)
    }

    pub(crate) fn has_field(&self, name: &[u8]) -> bool {
        self.find_field(name).is_some()
    }

    /// Takes back every line of a field.
    pub(crate) fn remove_field(&mut self, name: &[u8]) {
        while let Some((line, _)) = self.find_field(name) {
            self.connection.output.buffer().drain(line);
        }
    }

    /// Puts `text` before the value of the first line of a field.
    pub(super) fn prefix_field(&mut self, name: &[u8], text: &[u8]) {
        if let Some((_, value)) = self.find_field(name) {
            let at = value.start;
            self.connection.output.buffer().splice(at..at, text.iter().copied());
        }
    }

    /// Whether any line of a field satisfies `is_it`.
    pub(super) fn any_field(&self, name: &[u8], is_it: impl Fn(&[u8]) -> bool) -> bool {
        let head = self.connection.output.tail();
        self.lines()
            .any(|(line, colon)| head[line.start..colon] == *name && is_it(&head[value(&line, colon)]))
    }

    /// Makes the response that was begun one of another status.
    pub(crate) fn change_status(&mut self, status: u16) {
        let start = self.start;
        let length = memchr::memmem::find(&self.connection.output.tail()[start..], LINE_END);
        let line = format!("HTTP/1.1 {status} {}", reason(status));
        self.status = status;
        let end = start + length.unwrap_or(0);
        self.connection.output.buffer().splice(start..end, line.into_bytes());
    }

    /// Adds whole field lines that are known to be right.
    pub(crate) fn prepared(&mut self, lines: &[u8]) {
        self.connection.output.buffer().extend_from_slice(lines);
    }

    /// Where a field stands: its line with the end, and its value.
    fn find_field(&self, name: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
        let head = self.connection.output.tail();
        let (line, colon) = self.lines().find(|(line, colon)| head[line.start..*colon] == *name)?;
        let value = value(&line, colon);
        Some((line, value))
    }

    /// The field lines that were written: each with its end, and where its colon is.
    fn lines(&self) -> impl Iterator<Item = (Range<usize>, usize)> + '_ {
        let head = self.connection.output.tail();
        let mut at = self.start;
        let ends = memchr::memmem::find_iter(head.get(at..).unwrap_or_default(), LINE_END);
        let start = at;
        ends.filter_map(move |end| {
            let end = start + end + LINE_END.len();
            let line = std::mem::replace(&mut at, end)..end;
            let colon = memchr::memchr(b':', &head[line.clone()])?;
            // The status line comes first; it is no field even with a colon in it.
            (line.start > start).then(|| (line.clone(), line.start + colon))
        })
    }
}

/// The value in a line that this server has written: after `: `, before the end.
fn value(line: &Range<usize>, colon: usize) -> Range<usize> {
    (colon + 2).min(line.end - LINE_END.len())..line.end - LINE_END.len()
}
