//! Reads DER (X.690) element by element, without knowing every type: a certificate may contain strings that libraries
//! have no type for, and its other fields count nevertheless.

/// An element: its identifier octet, its content, and all of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<'a> {
    pub(super) tag: u8,
    pub(super) content: &'a [u8],
    pub(super) whole: &'a [u8],
}

pub(super) const BOOLEAN: u8 = 1;
pub(super) const INTEGER: u8 = 2;
pub(super) const BIT_STRING: u8 = 3;
pub(super) const OCTET_STRING: u8 = 4;
pub(super) const OBJECT_IDENTIFIER: u8 = 6;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// A context-specific tag: primitive, and constructed.
pub(super) const fn context(number: u8) -> u8 {
    0x80 | number
}

pub(super) const fn context_constructed(number: u8) -> u8 {
    0xa0 | number
}

/// The elements of a content. Ends early at a malformed element; check this with [`Elements::is_over`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    pub(super) fn of(content: &'a [u8]) -> Elements<'a> {
        Elements(content)
    }

    /// The elements of a sequence that fills all of `bytes`.
    pub(super) fn of_sequence(bytes: &'a [u8]) -> Option<Elements<'a>> {
        let mut outer = Elements(bytes);
        let sequence = outer.next_of(SEQUENCE)?;
        outer.is_over().then_some(Elements(sequence.content))
    }

    /// Returns true if every byte was read.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// The next element, if it has this tag.
    pub(super) fn next_of(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut after = *self;
        let element = after.next().filter(|element| element.tag == tag)?;
        *self = after;
        Some(element)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    fn next(&mut self) -> Option<Element<'a>> {
        let [tag, first, rest @ ..] = self.0 else { return None };
        // Tags above 30 are not used here.
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, rest) = match first {
            0..=0x7f => (usize::from(*first), rest),
            0x81..=0x84 => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                let length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
                // DER has only one form of each length.
                let is_shortest = digits[0] != 0 && length > 0x7f;
                (is_shortest.then_some(length)?, rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = &self.0[..self.0.len() - rest.len()];
        self.0 = rest;
        Some(Element {
            tag: *tag,
            content,
            whole,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_one_after_the_other() {
        let mut elements = Elements::of(&[2, 1, 7, 0x30, 0x81, 0x80]);
        assert!(elements.next_of(SEQUENCE).is_none());
        assert_eq!(elements.next_of(INTEGER).map(|element| element.content), Some(&[7][..]));
        assert!(elements.next().is_none(), "its content is missing");
        assert!(!elements.is_over());
    }

    #[test]
    fn a_length_has_one_form() {
        let read = |bytes: &[u8]| Elements::of(bytes).next().map(|element| element.content.len());
        let long = [&[4, 0x81, 0x80][..], &[0; 0x80]].concat();
        assert_eq!(read(&long), Some(0x80));
        assert_eq!(read(&[4, 0x81, 1, 0]), None);
        assert_eq!(read(&[4, 0x82, 0, 1, 0]), None);
        assert_eq!(read(&[4, 0x80, 0, 0]), None);
        assert_eq!(read(&[0x1f, 1, 0]), None);
        assert_eq!(read(&[]), None);
    }
}
