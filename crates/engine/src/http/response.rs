//! The head of a response as a value: a status and fields. A protocol writes it (`http1.rs`).

use std::ops::Range;

/// Header fields in order, with names in lower case. The text is kept as HTTP/1 lines, so that one copy writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// `name: value` and a line end for each field.
    text: Vec<u8>,
    lines: Vec<Line>,
}

/// The position of one field in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    start: usize,
    name_end: usize,
    /// The end of the value; the line end follows.
    end: usize,
}

const COLON: &[u8] = b": ";
const LINE_END: &[u8] = b"\r\n";

impl Line {
    fn name(&self) -> Range<usize> {
        self.start..self.name_end
    }

    fn value(&self) -> Range<usize> {
        self.name_end + COLON.len()..self.end
    }

    fn moved(&self, distance: isize) -> Line {
        let moved = |place: usize| place.saturating_add_signed(distance);
        Line {
            start: moved(self.start),
            name_end: moved(self.name_end),
            end: moved(self.end),
        }
    }
}

impl Fields {
    /// Adds a field. Name and value must be valid (RFC 9110 §5.1, §5.5).
    pub(crate) fn add(&mut self, name: &[u8], value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name);
        self.text[start..].make_ascii_lowercase();
        let name_end = self.text.len();
        self.text.extend_from_slice(COLON);
        self.text.extend_from_slice(value);
        let end = self.text.len();
        self.text.extend_from_slice(LINE_END);
        self.lines.push(Line { start, name_end, end });
    }

    /// Adds all fields of `others`.
    pub(crate) fn extend(&mut self, others: &Fields) {
        let distance = self.text.len() as isize;
        self.text.extend_from_slice(&others.text);
        self.lines.extend(others.lines.iter().map(|line| line.moved(distance)));
    }

    /// Names and values, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines
            .iter()
            .map(|line| (&self.text[line.name()], &self.text[line.value()]))
    }

    /// The first value of a field; `name` in lower case.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// All values of a field; `name` in lower case.
    pub(crate) fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Returns true if there is such a field; `name` in lower case.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.get(name).is_some()
    }

    /// Removes every line of a field; `name` in lower case.
    pub(crate) fn remove(&mut self, name: &[u8]) {
        while let Some(index) = self.position(name) {
            let line = self.lines.remove(index);
            let end = line.end + LINE_END.len();
            self.text.drain(line.start..end);
            self.shift(index, line.start as isize - end as isize);
        }
    }

    /// Puts `text` before the first value of a field; `name` in lower case.
    pub(crate) fn prefix(&mut self, name: &[u8], text: &[u8]) {
        if let Some(index) = self.position(name) {
            let at = self.lines[index].value().start;
            self.text.splice(at..at, text.iter().copied());
            self.lines[index].end += text.len();
            self.shift(index + 1, text.len() as isize);
        }
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        self.lines.iter().position(|line| self.text[line.name()] == *name)
    }

    /// Moves the lines from `index` on by `distance`.
    fn shift(&mut self, index: usize, distance: isize) {
        for line in &mut self.lines[index..] {
            *line = line.moved(distance);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
    }

    /// All fields as HTTP/1 lines.
    pub(super) fn as_lines(&self) -> &[u8] {
        &self.text
    }

    /// Bytes of all lines.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }
}

/// The reason why a response field is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldError {
    /// The name or value contains characters that are not allowed (RFC 9110 §5.1, §5.5).
    Splitting,
    /// The content-length is invalid, or contradicts another one.
    Length,
}

impl FieldError {
    /// The error as a text, for [`Exchange::blame`](crate::Exchange::blame).
    pub fn fault(self) -> &'static str {
        match self {
            FieldError::Splitting => "a response field that could split the response was left out",
            FieldError::Length => "an invalid or contradictory content-length was left out",
        }
    }
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) fields: Fields,
}

impl ResponseHead {
    /// Starts a new head.
    pub(crate) fn start(&mut self, status: u16) {
        self.status = status;
        self.fields.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(lines: &[(&str, &str)]) -> Fields {
        let mut fields = Fields::default();
        for (name, value) in lines {
            fields.add(name.as_bytes(), value.as_bytes());
        }
        fields
    }

    fn text(fields: &Fields) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let lines = fields
            .iter()
            .map(|(name, value)| format!("{}: {}\r\n", text(name), text(value)));
        let lines: String = lines.collect();
        assert_eq!(lines.as_bytes(), fields.as_lines());
        lines
    }

    #[test]
    fn fields_keep_their_order_and_their_names_become_lower_case() {
        let fields = fields(&[
            ("ETag", "\"A\""),
            ("Set-Cookie", "a=1"),
            ("set-cookie", ""),
            ("x", "a: b"),
        ]);
        assert_eq!(
            text(&fields),
            "etag: \"A\"\r\nset-cookie: a=1\r\nset-cookie: \r\nx: a: b\r\n"
        );
        assert_eq!(fields.get(b"x"), Some(&b"a: b"[..]));
        assert_eq!(fields.values(b"set-cookie").count(), 2);
        assert!(!fields.has(b"ETag"), "names are asked for in lower case");
    }

    #[test]
    fn every_line_of_a_field_is_removed_and_the_others_stay() {
        for name in ["a", "b", "c", "d"] {
            let lines = [("a", "1"), ("b", "22"), ("a", "333"), ("c", ""), ("a", "4")];
            let mut all = fields(&lines);
            all.remove(name.as_bytes());
            let left: Vec<_> = lines.into_iter().filter(|(own, _)| *own != name).collect();
            assert_eq!(text(&all), text(&fields(&left)), "without {name}");
        }
    }

    #[test]
    fn a_prefix_goes_before_the_first_value() {
        let mut all = fields(&[("x", "1"), ("etag", "\"a\""), ("etag", "\"b\""), ("y", "2")]);
        all.prefix(b"etag", b"W/");
        all.prefix(b"none", b"W/");
        assert_eq!(text(&all), "x: 1\r\netag: W/\"a\"\r\netag: \"b\"\r\ny: 2\r\n");
    }

    #[test]
    fn fields_can_be_joined() {
        let mut all = fields(&[("a", "1")]);
        all.extend(&fields(&[("b", "2"), ("c", "3")]));
        all.extend(&Fields::default());
        assert_eq!(text(&all), "a: 1\r\nb: 2\r\nc: 3\r\n");
        all.remove(b"b");
        assert_eq!(all.get(b"c"), Some(&b"3"[..]));
    }
}
