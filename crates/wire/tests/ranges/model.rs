//! RFC 9110 §14.1.2 read naively, with numbers as text, padded with zeros and compared; and RFC 2046 §5.1.1 for the
//! output. Slow, and shares no code with the parser.

/// Most ranges that one request gets.
const MOST: usize = 100;

/// First and last byte of every part, in the requested order; empty if no part is satisfiable, `None` for the whole
/// file.
pub(crate) fn ranges(value: &[u8], size: u64) -> Option<Vec<(u64, u64)>> {
    let (unit, list) = std::str::from_utf8(value).ok()?.split_once('=')?;
    let specs: Vec<&str> = list.split(',').map(|spec| spec.trim_matches([' ', '\t'])).collect();
    let specs: Vec<&str> = specs.into_iter().filter(|spec| !spec.is_empty()).collect();
    if unit.to_lowercase() != "bytes" || size == 0 || specs.is_empty() || specs.len() > MOST {
        return None;
    }
    let selected: Option<Vec<Option<(u64, u64)>>> = specs.into_iter().map(|spec| selected(spec, size)).collect();
    let parts: Vec<(u64, u64)> = selected?.into_iter().flatten().collect();
    let total: u128 = parts.iter().map(|&(first, last)| u128::from(last - first) + 1).sum();
    (total <= u128::from(size)).then_some(parts)
}

/// First and last byte that a range-spec selects, `Some(None)` for none, `None` for a fault.
fn selected(spec: &str, size: u64) -> Option<Option<(u64, u64)>> {
    let [first, last] = spec.split('-').collect::<Vec<_>>()[..] else {
        return None;
    };
    let width = spec.len() + 20;
    let padded = |number: &str| "0".repeat(width - number.len()) + number;
    let end = padded(&size.to_string());
    let number = |number: &str| number.parse().expect("less than the size");
    if !(first.to_owned() + last).chars().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    match (first, last) {
        ("", "") => None,
        ("", suffix) if padded(suffix) == padded("0") => Some(None),
        ("", suffix) if padded(suffix) >= end => Some(Some((0, size - 1))),
        ("", suffix) => Some(Some((size - number(suffix), size - 1))),
        (first, last) if !last.is_empty() && padded(last) < padded(first) => None,
        (first, _) if padded(first) >= end => Some(None),
        (first, last) if last.is_empty() || padded(last) >= end => Some(Some((number(first), size - 1))),
        (first, last) => Some(Some((number(first), number(last)))),
    }
}

/// A part of a body: its fields as text, and its bytes.
pub(crate) type Part = (String, Vec<u8>);

/// The parts of a multipart body; `None` for any other body.
pub(crate) fn parts(body: &[u8], boundary: &str) -> Option<Vec<Part>> {
    let delimiter = format!("\r\n--{boundary}");
    let mut pieces = Vec::new();
    let mut rest = body;
    while let Some(at) = rest
        .windows(delimiter.len())
        .position(|window| window == delimiter.as_bytes())
    {
        pieces.push(&rest[..at]);
        rest = &rest[at + delimiter.len()..];
    }
    // There is nothing before the first delimiter; the last one closes.
    let [[], parts @ ..] = &pieces[..] else {
        return None;
    };
    let part = |piece: &&[u8]| {
        let text = piece.strip_prefix(b"\r\n")?;
        let end = text.windows(4).position(|window| window == b"\r\n\r\n")?;
        Some((String::from_utf8(text[..end].to_vec()).ok()?, text[end + 4..].to_vec()))
    };
    if rest == b"--\r\n" {
        parts.iter().map(part).collect()
    } else {
        None
    }
}
