//! How a message that is assembled grows: by doubling, as vectors do, but never beyond what may come.

/// Makes room for `size` more bytes, and for as many as there are if they may come, but not for more than `most`.
pub(super) fn grow(out: &mut Vec<u8>, size: usize, most: usize) {
    if out.capacity() - out.len() < size {
        out.reserve_exact(size.max(out.len().min(most)));
    }
}

#[cfg(test)]
mod tests {
    use super::grow;

    #[test]
    fn room_doubles_until_no_more_can_come() {
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
    fn what_is_only_announced_takes_nothing() {
        let mut bytes = Vec::new();
        grow(&mut bytes, 1, 1 << 40);
        assert_eq!(bytes.capacity(), 1);
    }
}
