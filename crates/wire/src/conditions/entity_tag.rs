//! Entity tags: their exact grammar, and the two ways to compare them (RFC 9110 §8.8.3).
//!
//! They look like quoted strings but have no escapes: `"\"` is a complete tag, and `"a,b"` is one tag, not two.

use crate::fields::trim;

/// An entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntityTag<'a> {
    weak: bool,
    /// The bytes between the quotation marks.
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Parses `text`, which must be exactly one tag.
    pub(super) fn parse(text: &'a [u8]) -> Option<EntityTag<'a>> {
        EntityTag::split(text).and_then(|(tag, rest)| rest.is_empty().then_some(tag))
    }

    /// The tag at the start of `text`, and the bytes after it.
    fn split(text: &'a [u8]) -> Option<(EntityTag<'a>, &'a [u8])> {
        let strong = text.strip_prefix(b"W/");
        let inside = strong.unwrap_or(text).strip_prefix(b"\"")?;
        let (opaque, rest) = inside.split_at(memchr::memchr(b'"', inside)?);
        let tag = EntityTag {
            weak: strong.is_some(),
            opaque,
        };
        let sound = opaque.iter().all(|&byte| byte > b' ' && byte != 0x7f);
        sound.then_some((tag, &rest[1..]))
    }
}

/// The strong comparison of RFC 9110 §8.8.3.2: both are strong, with identical bytes.
pub(super) fn strongly_equal(one: EntityTag<'_>, other: EntityTag<'_>) -> bool {
    !one.weak && !other.weak && one.opaque == other.opaque
}

/// The weak comparison: identical bytes, weak or strong.
pub(super) fn weakly_equal(one: EntityTag<'_>, other: EntityTag<'_>) -> bool {
    one.opaque == other.opaque
}

/// Returns true if a list of entity tags, without white space around it, contains a `wanted` one; `None` if the list is
/// invalid. Members may be empty (RFC 9110 §5.6.1.2).
pub(super) fn names(list: &[u8], wanted: impl Fn(EntityTag<'_>) -> bool) -> Option<bool> {
    let mut found = false;
    let mut rest = list;
    while let Some(&first) = rest.first() {
        if first != b',' {
            let (tag, behind) = EntityTag::split(rest)?;
            found |= wanted(tag);
            rest = trim(behind);
        }
        match rest {
            [b',', behind @ ..] => rest = trim(behind),
            [] => {}
            _ => return None,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_may_contain_any_byte_except_controls_space_and_quotation_mark() {
        let refused: Vec<u8> = (0..=255)
            .filter(|&byte| EntityTag::parse(&[b'"', byte, b'"']).is_none())
            .collect();
        let expected: Vec<u8> = (0..=32).chain([b'"', 0x7f]).collect();
        assert_eq!(refused, expected);
    }
}
