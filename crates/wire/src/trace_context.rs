//! `traceparent` (W3C Trace Context §3.2): the trace that a request belongs to.

/// `version-trace_id-parent_id-flags`: the lengths of the four parts of version 00.
const PARTS: [usize; 4] = [2, 32, 16, 2];

/// The number of bytes of version 00.
const BYTES: usize = 55;

/// The trace id of a valid `traceparent`: 32 hexadecimal digits, in lower case and not all zero. A later version may have more after
/// the parts of version 00 (§4).
pub fn trace_id(value: &[u8]) -> Option<&[u8]> {
    let (known, more) = value.split_at_checked(BYTES)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let parts = PARTS.map(|length| {
        parts
            .next()
            .filter(|part| part.len() == length && part.iter().all(is_digit))
    });
    let [Some(version), Some(trace_id), Some(parent_id), Some(_)] = parts else {
        return None;
    };
    let is_known = match version {
        b"00" => more.is_empty(),
        b"ff" => false,
        _ => matches!(more, [] | [b'-', ..]),
    };
    (is_known && !is_zero(trace_id) && !is_zero(parent_id)).then_some(trace_id)
}

fn is_digit(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

fn is_zero(id: &[u8]) -> bool {
    id.iter().all(|digit| *digit == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    #[test]
    fn a_valid_one_has_an_id() {
        for valid in [
            format!("00-{ID}-{PARENT}-01"),
            format!("00-{ID}-{PARENT}-ff"),
            format!("01-{ID}-{PARENT}-00"),
            format!("fe-{ID}-{PARENT}-00-and more"),
            format!("cc-{ID}-{PARENT}-00-"),
        ] {
            assert_eq!(trace_id(valid.as_bytes()), Some(ID.as_bytes()), "{valid}");
        }
    }

    #[test]
    fn everything_else_has_none() {
        let zeros = |count| "0".repeat(count);
        for invalid in [
            String::new(),
            format!("00-{ID}-{PARENT}-0"),
            format!("00-{ID}-{PARENT}-01-"),
            format!("00-{ID}-{PARENT}-01-more"),
            format!("00-{ID}-{PARENT}-011"),
            format!("01-{ID}-{PARENT}-01more"),
            format!("ff-{ID}-{PARENT}-01"),
            format!("0g-{ID}-{PARENT}-01"),
            format!("00-{ID}-{PARENT}-0G"),
            format!("00-{}-{PARENT}-01", ID.to_uppercase()),
            format!("00-{ID}-{}-01", PARENT.to_uppercase()),
            format!("00-{}-{PARENT}-01", zeros(32)),
            format!("00-{ID}-{}-01", zeros(16)),
            format!("00-{}-{PARENT}0-01", &ID[1..]),
            format!("00_{ID}_{PARENT}_01"),
            format!("00-{ID}-{PARENT}-01").replacen('-', "", 1) + "0",
            format!("000-{}-{PARENT}-01", &ID[1..]),
            format!(" 00-{ID}-{PARENT}-01"),
        ] {
            assert_eq!(trace_id(invalid.as_bytes()), None, "{invalid:?}");
        }
    }
}
