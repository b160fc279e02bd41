//! The end of the output of an inflater: later messages may refer to it, if both sides keep the context.

/// The largest distance of a reference (RFC 1951 §2).
const BYTES: usize = 32 * 1024;

/// The longest block without compression (RFC 1951 §3.2.4).
const BLOCK: usize = 0xffff;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Window(Vec<u8>);

impl Window {
    /// Adds output.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(BYTES)..];
        let kept = self.0.len().min(BYTES - new.len());
        self.0.drain(..self.0.len() - kept);
        self.0.extend_from_slice(new);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Blocks without compression: an inflater that reads them has these bytes in its window.
    pub(super) fn stored_blocks(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
        bytes.chunks(BLOCK).map(|chunk| {
            let length = chunk.len() as u16;
            let mut block = vec![0];
            block.extend_from_slice(&length.to_le_bytes());
            block.extend_from_slice(&(!length).to_le_bytes());
            block.extend_from_slice(chunk);
            block
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_are_kept() {
        let mut window = Window::default();
        window.add(&[1; 10]);
        window.add(&[2; BYTES - 5]);
        assert_eq!(window.bytes().len(), BYTES);
        assert_eq!(window.bytes()[..6], [1, 1, 1, 1, 1, 2]);
        window.add(&[3; 2 * BYTES]);
        assert_eq!(window.bytes(), [3; BYTES]);
    }
}
