//! CRC32C (RFC 9260 Appendix A): a remainder by Castagnoli's polynomial, over the bits of each byte in reverse order.

/// The polynomial 0x1edc6f41, in reverse order.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The remainder that each byte alone leaves.
const TABLE: [u32; 256] = table();

/// The checksum of several pieces in a row.
pub(super) fn crc32c(pieces: &[&[u8]]) -> u32 {
    let bytes = pieces.iter().copied().flatten();
    let step = |sum: u32, byte: &u8| sum >> 8 ^ TABLE[usize::from(sum as u8 ^ byte)];
    !bytes.fold(u32::MAX, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn sums_are_those_of_rfc_3720() {
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"123456789", 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
        ] {
            assert_eq!(crc32c(&[bytes]), expected, "{bytes:?}");
            let (start, end) = bytes.split_at(bytes.len() / 3);
            assert_eq!(crc32c(&[start, &[], end]), expected);
        }
    }
}
