//! The growth of the buffer of an assembled message: it doubles, like a vector, but never beyond the bytes that may
//! still arrive.

/// Makes room for `size` more bytes; doubles the length if as many may still arrive, but reserves no more than `most`.
pub(super) fn grow(out: &mut Vec<u8>, size: usize, most: usize) {
    if out.capacity() - out.len() < size {
        out.reserve_exact(size.max(out.len().min(most)));
    }
}

#[cfg(test)]
mod tests {
    use super::grow;

    #[test]
    fn the_capacity_doubles_up_to_what_can_arrive() {
        let mut bytes = Vec::new();
        let mut capacities = Vec::new();
        while bytes.len() < 100 {
            let piece = [0; 10];
            let most = 100 - bytes.len();
            grow(&mut bytes, piece.len(), most);
            bytes.extend_from_slice(&piece);
            capacities.push(bytes.capacity());
        }
        assert_eq!(capacities, [10, 20, 40, 40, 80, 80, 80, 80, 100, 100]);
    }

    #[test]
    fn bytes_that_are_only_announced_take_no_memory() {
        let mut bytes = Vec::new();
        grow(&mut bytes, 1, 1 << 40);
        assert_eq!(bytes.capacity(), 1);
    }
}
