//! The names that a path may contain.

use super::{PathFault, PathRules};

/// The longest name: NAME_MAX of Linux.
const MAX_NAME_BYTES: usize = 255;

/// Checks one name with allowed bytes. `may_be_short` is false if the path has no `~` so far.
#[inline]
pub(super) fn check(name: &[u8], is_first: bool, may_be_short: bool, rules: PathRules) -> Result<(), PathFault> {
    let (Some(&first), Some(&last)) = (name.first(), name.last()) else {
        return Err(PathFault::EmptyName);
    };
    if name.len() > MAX_NAME_BYTES {
        return Err(PathFault::NameTooLong);
    }
    if first == b'.' {
        check_leading_dot(name, is_first, rules)?;
    }
    if matches!(last, b'.' | b' ') {
        return Err(PathFault::TrailingDotOrSpace);
    }
    if last == b'~' && !rules.hidden {
        return Err(PathFault::HiddenName);
    }
    if may_be_short && is_short_name(name) {
        return Err(PathFault::ShortName);
    }
    if is_device_name(name) {
        return Err(PathFault::DeviceName);
    }
    Ok(())
}

fn check_leading_dot(name: &[u8], is_first: bool, rules: PathRules) -> Result<(), PathFault> {
    match name {
        b"." => Err(PathFault::CurrentFolder),
        [b'.', b'.', ..] => Err(PathFault::ParentFolder),
        b".well-known" if is_first => Ok(()),
        _ if rules.hidden => Ok(()),
        _ => Err(PathFault::HiddenName),
    }
}

/// Returns true if a name has the form of FAT and NTFS aliases of longer names: at most eight characters that end with
/// `~` and digits, then an extension of at most three characters.
fn is_short_name(name: &[u8]) -> bool {
    let (stem, extension) = split_at_dot(name);
    let is_numbered = stem
        .iter()
        .rposition(|byte| !byte.is_ascii_digit())
        .is_some_and(|at| stem[at] == b'~' && at + 1 < stem.len());
    is_numbered && characters(stem) <= 8 && characters(extension) <= 3 && !extension.contains(&b'.')
}

/// The number of characters in UTF-8 text: counts the bytes that are not continuation bytes.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Returns true if Windows treats the name as a device: the part before the first dot, without trailing spaces,
/// ignoring case.
fn is_device_name(name: &[u8]) -> bool {
    let Some(beginning) = name.first_chunk::<3>() else {
        return false;
    };
    let numbered = match &beginning.map(|byte| byte.to_ascii_lowercase()) {
        b"com" | b"lpt" => true,
        b"con" | b"prn" | b"aux" | b"nul" | b"clo" => false,
        _ => return false,
    };
    let stem = split_at_dot(name).0.trim_ascii_end();
    if numbered {
        return stem.get(beginning.len()..).is_some_and(is_one_digit);
    }
    let devices: [&[u8]; 7] = [b"con", b"prn", b"aux", b"nul", b"conin$", b"conout$", b"clock$"];
    devices.iter().any(|device| stem.eq_ignore_ascii_case(device))
}

/// Returns true for the number of a port. Superscripts count as digits, because they do in Latin-1.
fn is_one_digit(text: &[u8]) -> bool {
    matches!(text, [b'0'..=b'9']) || ["¹", "²", "³"].iter().any(|digit| text == digit.as_bytes())
}

/// The parts before and after the first dot.
fn split_at_dot(name: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'.', name) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => (name, &[]),
    }
}
