//! UTF-8 that arrives in pieces (RFC 3629): a fault is detected at the first byte that no valid text could have there.

use std::str::from_utf8;

/// The state of a text. Small and without allocation: keeps at most the beginning of one character.
#[derive(Debug, Default)]
pub(super) struct Validator {
    begun: [u8; 4],
    length: u8,
}

impl Validator {
    /// The beginning of a character.
    pub(super) fn begun(&self) -> &[u8] {
        &self.begun[..usize::from(self.length)]
    }

    /// A text that ends with the beginning of a character; `None` if no character begins like that.
    pub(super) fn with_begun(begun: &[u8]) -> Option<Validator> {
        let mut validator = Validator::default();
        let is_begun = validator.feed(begun) && usize::from(validator.length) == begun.len();
        is_begun.then_some(validator)
    }

    /// Checks the next piece. Returns false if no valid text begins with the bytes so far; do not call it after that.
    pub(super) fn feed(&mut self, piece: &[u8]) -> bool {
        let mut rest = piece;
        while self.length > 0 {
            let Some((&byte, tail)) = rest.split_first() else {
                return true;
            };
            let length = usize::from(self.length);
            self.begun[length] = byte;
            self.length += 1;
            rest = tail;
            match from_utf8(&self.begun[..=length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_some() => return false,
                Err(_) => {}
            }
        }
        let Err(error) = from_utf8(rest) else {
            return true;
        };
        let begun = &rest[error.valid_up_to()..];
        if error.error_len().is_some() {
            return false;
        }
        // Without an error length, the text ends within a character, after at most three bytes of it.
        self.begun[..begun.len()].copy_from_slice(begun);
        self.length = begun.len() as u8;
        true
    }

    /// Returns true if the text may end here; starts the next text.
    pub(super) fn finish(&mut self) -> bool {
        std::mem::take(&mut self.length) == 0
    }
}
