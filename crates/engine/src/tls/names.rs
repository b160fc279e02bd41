//! Names in certificates as text (RFC 4514), as OpenSSL and nginx write them.

use super::der::{Element, Elements, OBJECT_IDENTIFIER, SEQUENCE, SET};
use std::fmt::Write;
use x509_cert::der::asn1::ObjectIdentifier;

/// The numbers of attributes, in DER.
pub(super) const COMMON_NAME: &[u8] = &[0x55, 4, 3];
pub(super) const EMAIL_ADDRESS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];

/// Returns a name in DER as text. The last part comes first, as in RFC 4514 §2.1.
pub(super) fn text(name: &[u8]) -> String {
    let mut parts: Vec<String> = parts(name).map(part).collect();
    parts.reverse();
    parts.join(",")
}

/// The values of an attribute (CN, O and so on) in a name.
pub(super) fn values(name: &[u8], wanted: &str) -> Vec<String> {
    let pairs = parts(name).flat_map(|part| Elements::of(part.content));
    let wanted = pairs.filter_map(read).filter(|(oid, _)| attribute(oid) == Some(wanted));
    wanted
        .filter_map(|(_, value)| String::from_utf8(utf8(value)?).ok())
        .collect()
}

/// The values of the attribute with this number; `None` if any part of the name is malformed, so that nothing can hide
/// there.
pub(super) fn elements<'a>(name: &'a [u8], wanted: &[u8]) -> Option<Vec<Element<'a>>> {
    let mut found = Vec::new();
    let mut parts = Elements::of_sequence(name)?;
    for part in parts.by_ref() {
        let mut attributes = Elements::of(part.content);
        for attribute in attributes.by_ref() {
            let mut fields = Elements::of(attribute.content);
            let (number, value) = (fields.next_of(OBJECT_IDENTIFIER)?, fields.next()?);
            (attribute.tag == SEQUENCE && fields.is_over()).then_some(())?;
            found.extend((number.content == wanted).then_some(value));
        }
        (part.tag == SET && attributes.is_over()).then_some(())?;
    }
    parts.is_over().then_some(found)
}

/// The parts of a name in canonical form: equal for names that OpenSSL considers equal. The kind of string, the case
/// and the number of blanks do not count.
pub(super) fn canonical(name: &[u8]) -> Vec<Canonical> {
    parts(name).map(canonical_part).collect()
}

/// The pairs of a part: the number of each attribute, and its value.
pub(super) type Canonical = Vec<(Vec<u8>, Vec<u8>)>;

pub(super) fn canonical_part(set: Element<'_>) -> Canonical {
    let pair = |attribute: Element<'_>| {
        let mut fields = Elements::of(attribute.content);
        let (number, value) = (fields.next_of(OBJECT_IDENTIFIER)?, fields.next()?);
        let text = utf8(value).map(|text| {
            let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            words.collect::<Vec<_>>().join(&b' ').to_ascii_lowercase()
        });
        Some((number.content.to_vec(), text.unwrap_or_else(|| value.whole.to_vec())))
    };
    let mut pairs: Canonical = Elements::of(set.content).filter_map(pair).collect();
    pairs.sort_unstable();
    pairs
}

/// The sets of attributes of a name.
fn parts(name: &[u8]) -> impl Iterator<Item = Element<'_>> {
    let parts = Elements::of_sequence(name).unwrap_or(Elements::of(&[]));
    parts.filter(|part| part.tag == SET)
}

fn part(set: Element<'_>) -> String {
    let mut pairs: Vec<String> = Elements::of(set.content).filter_map(read).map(pair).collect();
    pairs.reverse();
    pairs.join("+")
}

/// The type and the value of an attribute.
fn read(attribute: Element<'_>) -> Option<(ObjectIdentifier, Element<'_>)> {
    let mut parts = Elements::of(attribute.content);
    let oid = parts.next_of(OBJECT_IDENTIFIER).filter(|_| attribute.tag == SEQUENCE)?;
    Some((ObjectIdentifier::from_bytes(oid.content).ok()?, parts.next()?))
}

fn pair((oid, value): (ObjectIdentifier, Element<'_>)) -> String {
    match (attribute(&oid), utf8(value)) {
        (Some(name), Some(text)) => format!("{name}={}", escaped(&text)),
        _ => format!("{oid}=#{}", hexadecimal(value.whole)),
    }
}

/// The text of a value; `None` if it is no text. Strings with one byte for a character are read as ISO 8859-1.
pub(super) fn utf8(value: Element<'_>) -> Option<Vec<u8>> {
    const UTF8: u8 = 12;
    const NUMERIC: u8 = 18;
    const UNIVERSAL: u8 = 28;
    const BMP: u8 = 30;
    let of = |characters: Vec<u32>| {
        let text = characters.into_iter().map(char::from_u32).collect::<Option<String>>();
        text.map(String::into_bytes)
    };
    let bytes = value.content;
    match value.tag {
        UTF8 => Some(bytes.to_vec()),
        // PrintableString, TeletexString, IA5String, VisibleString
        NUMERIC | 19 | 20 | 22 | 26 => of(bytes.iter().map(|byte| u32::from(*byte)).collect()),
        UNIVERSAL if bytes.len() % 4 == 0 => {
            let units = bytes
                .chunks_exact(4)
                .map(|unit| unit.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)));
            of(units.collect())
        }
        BMP if bytes.len() % 2 == 0 => {
            let units: Vec<u16> = bytes
                .chunks_exact(2)
                .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
                .collect();
            String::from_utf16(&units).ok().map(String::into_bytes)
        }
        _ => None,
    }
}

pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02X}");
            text
        })
}

/// Escapes a value (RFC 4514 §2.4). Bytes outside of ASCII are escaped too, as OpenSSL does, so that the env has only
/// ASCII.
fn escaped(value: &[u8]) -> String {
    let last = value.len().saturating_sub(1);
    let mut text = String::with_capacity(value.len());
    for (index, byte) in value.iter().copied().enumerate() {
        let is_special = match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => true,
            b'#' => index == 0,
            b' ' => index == 0 || index == last,
            _ => false,
        };
        let _ = match byte {
            _ if is_special => write!(text, "\\{}", char::from(byte)),
            b' '..=b'~' => write!(text, "{}", char::from(byte)),
            _ => write!(text, "\\{byte:02X}"),
        };
    }
    text
}

/// OpenSSL's names of the attributes in use.
fn attribute(oid: &ObjectIdentifier) -> Option<&'static str> {
    const NAMES: [(&str, &str); 18] = [
        ("2.5.4.3", "CN"),
        ("2.5.4.4", "SN"),
        ("2.5.4.5", "serialNumber"),
        ("2.5.4.6", "C"),
        ("2.5.4.7", "L"),
        ("2.5.4.8", "ST"),
        ("2.5.4.9", "street"),
        ("2.5.4.10", "O"),
        ("2.5.4.11", "OU"),
        ("2.5.4.12", "title"),
        ("2.5.4.17", "postalCode"),
        ("2.5.4.42", "GN"),
        ("2.5.4.43", "initials"),
        ("2.5.4.46", "dnQualifier"),
        ("2.5.4.97", "organizationIdentifier"),
        ("0.9.2342.19200300.100.1.1", "UID"),
        ("0.9.2342.19200300.100.1.25", "DC"),
        ("1.2.840.113549.1.9.1", "emailAddress"),
    ];
    NAMES
        .iter()
        .find(|(number, _)| ObjectIdentifier::new_unwrap(number) == *oid)
        .map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name with one common name of this kind.
    fn name(tag: u8, value: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let pair = [wrap(6, &[0x55, 4, 3]), wrap(tag, value)].concat();
        wrap(SEQUENCE, &wrap(SET, &wrap(SEQUENCE, &pair)))
    }

    #[test]
    fn every_kind_of_string_is_text() {
        for (tag, value, expected) in [
            (12, "J\u{f6}rg".as_bytes(), "CN=J\\C3\\B6rg"),
            (19, b"Ann", "CN=Ann"),
            (18, b"12 3", "CN=12 3"),
            (20, b"J\xf6rg", "CN=J\\C3\\B6rg"),
            (28, &[0, 0, 0, b'A', 0, 1, 0xf6, 0], "CN=A\\F0\\9F\\98\\80"),
            (30, &[0, b'A', 0xd8, 0x3d, 0xde, 0], "CN=A\\F0\\9F\\98\\80"),
            (30, &[0, b'A', 0], "2.5.4.3=#1E03004100"),
            (4, b"A", "2.5.4.3=#040141"),
        ] {
            assert_eq!(text(&name(tag, value)), expected);
        }
        assert_eq!(values(&name(30, &[0, b'a']), "CN"), ["a"]);
        assert_eq!(text(b"malformed"), "");
    }

    #[test]
    fn a_malformed_name_has_no_elements() {
        let whole = name(19, b"Ann");
        let found = elements(&whole, COMMON_NAME).unwrap_or_default();
        assert_eq!(found.iter().map(|one| one.content).collect::<Vec<_>>(), [b"Ann"]);
        assert!(elements(&whole, EMAIL_ADDRESS).is_some_and(|found| found.is_empty()));
        // A set that is too long for its name, and a part that is no set.
        for (place, byte) in [(3, 0x7f), (2, SEQUENCE)] {
            let mut broken = whole.clone();
            broken[place] = byte;
            assert!(elements(&broken, COMMON_NAME).is_none());
        }
    }

    #[test]
    fn what_has_a_meaning_in_a_name_is_escaped() {
        assert_eq!(escaped(b" #a,b+\"c\\ "), "\\ #a\\,b\\+\\\"c\\\\\\ ");
        assert_eq!(escaped(b"#1"), "\\#1");
        assert_eq!(escaped("\u{e4}\n".as_bytes()), "\\C3\\A4\\0A");
        assert_eq!(escaped(b""), "");
    }
}
