//! The priority that a client gives a request among its own (RFC 9218).

/// The urgency of a response: 0 (most) to 7 (least).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority(u8);

impl Default for Priority {
    fn default() -> Priority {
        Priority(3)
    }
}

impl Priority {
    /// The priority in the value of a `priority` field: a Dictionary (RFC 8941 §3.2) in which the member `u` is the
    /// urgency. Malformed values and values out of range are ignored, as RFC 9218 §4 requires. If a member occurs
    /// several times, the last one counts.
    pub fn of(value: &[u8]) -> Priority {
        let members = value.split(|byte| *byte == b',').map(|member| member.trim_ascii());
        let mut urgencies = members.filter_map(|member| match member.strip_prefix(b"u=")? {
            [digit @ b'0'..=b'7'] | [digit @ b'0'..=b'7', b';', ..] => Some(Priority(digit - b'0')),
            _ => None,
        });
        urgencies.next_back().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgency_is_read_and_nonsense_is_ignored() {
        for (value, urgency) in [
            ("u=0", 0),
            ("u=7, i", 7),
            ("i, u=5", 5),
            ("u=1;x=2", 1),
            ("u=1, u=6", 6),
            ("", 3),
            ("u=8", 3),
            ("u=-1", 3),
            ("u=2.0", 3),
            ("U=0", 3),
            ("xu=0", 3),
        ] {
            assert_eq!(Priority::of(value.as_bytes()), Priority(urgency), "{value}");
        }
        assert!(Priority::of(b"u=0") < Priority::default());
    }
}
