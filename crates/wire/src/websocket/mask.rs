//! Masking (RFC 6455 §5.3): XOR with a key of four bytes, which is its own inverse.

/// Bytes that are masked at once; the compiler uses vector instructions for this.
const BLOCK: usize = 32;

/// Masks or unmasks `bytes`; the first byte is combined with the first byte of `key`.
pub(super) fn apply(bytes: &mut [u8], key: [u8; 4]) {
    let mut wide = [0; BLOCK];
    for part in wide.chunks_exact_mut(4) {
        part.copy_from_slice(&key);
    }
    let mut blocks = bytes.chunks_exact_mut(BLOCK);
    for block in &mut blocks {
        for (byte, key) in block.iter_mut().zip(&wide) {
            *byte ^= key;
        }
    }
    for (byte, key) in blocks.into_remainder().iter_mut().zip(&wide) {
        *byte ^= key;
    }
}

/// The key for the bytes after `length` masked ones.
pub(super) fn advanced(mut key: [u8; 4], length: usize) -> [u8; 4] {
    key.rotate_left(length % 4);
    key
}

#[cfg(test)]
mod tests {
    use super::{advanced, apply};

    #[test]
    fn any_length_in_any_pieces_is_masked_correctly() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for length in 0..200 {
            let plain: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let expected: Vec<u8> = plain.iter().enumerate().map(|(at, byte)| byte ^ key[at % 4]).collect();
            for split in 0..=length {
                let mut masked = plain.clone();
                let (front, back) = masked.split_at_mut(split);
                apply(front, key);
                apply(back, advanced(key, split));
                assert_eq!(masked, expected, "{length} at {split}");
            }
        }
    }
}
