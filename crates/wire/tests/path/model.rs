//! A second implementation of paths: naive, name by name on Strings, and written from the rules instead of from the
//! code. It finds all faults of a path, whereas the code stops at the first one.

use fairlead_wire::PathFault::{self, *};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// A path without a fault.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) decoded: Vec<u8>,
    pub(crate) is_folder: bool,
}

/// Reads a path as sent.
pub(crate) fn sent(path: &[u8], hidden: bool) -> Result<Path, Vec<PathFault>> {
    let mut names: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    if names.remove(0) != b"" || names.is_empty() {
        return Err(vec![NoLeadingSlash]);
    }
    let is_folder = names.last() == Some(&&b""[..]);
    if is_folder {
        names.pop();
    }
    let mut faults = Vec::new();
    let decoded: Vec<Vec<u8>> = names.into_iter().map(|name| decode(name, &mut faults)).collect();
    faults.extend(faults_of(&decoded, hidden));
    let decoded = decoded.join(&b'/');
    if faults.is_empty() {
        Ok(Path { decoded, is_folder })
    } else {
        Err(faults)
    }
}

/// The faults of a decoded path.
pub(crate) fn decoded(path: &[u8], hidden: bool) -> Vec<PathFault> {
    if path.is_empty() {
        return Vec::new();
    }
    let names: Vec<Vec<u8>> = path.split(|&byte| byte == b'/').map(<[u8]>::to_vec).collect();
    faults_of(&names, hidden)
}

/// An invalid escape stays unchanged, so that more faults can be found.
fn decode(name: &[u8], faults: &mut Vec<PathFault>) -> Vec<u8> {
    if name.contains(&b'#') {
        faults.push(Fragment);
    }
    let mut pieces = name.split(|&byte| byte == b'%');
    let mut decoded = pieces.next().unwrap_or_default().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(octet) {
            Some(octet) => {
                decoded.push(octet);
                decoded.extend(&piece[2..]);
            }
            None => {
                faults.push(InvalidEscape);
                decoded.push(b'%');
                decoded.extend(piece);
            }
        }
    }
    if decoded.contains(&b'/') {
        faults.push(EncodedSlash);
    }
    decoded
}

fn octet(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    // A number may have a sign, but an escape may not.
    let text = text.chars().all(|digit| digit.is_ascii_hexdigit()).then_some(text)?;
    u8::from_str_radix(text, 16).ok()
}

fn faults_of(names: &[Vec<u8>], hidden: bool) -> Vec<PathFault> {
    let mut faults = Vec::new();
    if names.join(&b'/').len() > 4096 {
        faults.push(PathTooLong);
    }
    for (index, name) in names.iter().enumerate() {
        if name.len() > 255 {
            faults.push(NameTooLong);
        }
        match std::str::from_utf8(name) {
            Ok(text) => text_faults(text, index == 0, hidden, &mut faults),
            // Any other fault may be reported instead.
            Err(_) => faults.extend(PathFault::ALL),
        }
    }
    faults
}

fn text_faults(name: &str, is_first: bool, hidden: bool, faults: &mut Vec<PathFault>) {
    let looks_hidden = (name.starts_with('.') && !(is_first && name == ".well-known")) || name.ends_with('~');
    for (fault, holds) in [
        (NulByte, name.contains('\0')),
        (ControlCharacter, name.chars().any(char::is_control)),
        (Backslash, name.contains('\\')),
        (Colon, name.contains(':')),
        (ReservedCharacter, name.contains(['<', '>', '"', '|', '?', '*'])),
        (DeceptiveCharacter, name.chars().any(is_deceptive)),
        (EmptyName, name.is_empty()),
        (CurrentFolder, name == "."),
        (ParentFolder, name.starts_with("..")),
        (TrailingDotOrSpace, name.ends_with(['.', ' '])),
        (ShortName, is_short(name)),
        (DeviceName, is_device(name)),
        (HiddenName, looks_hidden && !hidden),
    ] {
        if holds {
            faults.push(fault);
        }
    }
}

fn is_short(name: &str) -> bool {
    let mut parts = name.split('.');
    let (stem, extension) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let fits = stem.chars().count() < 9 && extension.chars().count() < 4 && parts.next().is_none();
    let number = stem.rsplit('~').next().unwrap_or_default();
    fits && stem.contains('~') && !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
}

fn is_device(name: &str) -> bool {
    let end = name.find('.').unwrap_or(name.len());
    let stem = name[..end].trim_end_matches(' ').to_ascii_uppercase();
    let ports = |kind: &'static str| "0123456789¹²³".chars().map(move |number| format!("{kind}{number}"));
    let others = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];
    others.contains(&stem.as_str()) || ports("COM").chain(ports("LPT")).any(|port| port == stem)
}

fn is_deceptive(character: char) -> bool {
    becomes(character).is_some()
}

/// The replacement of a character according to `deceptive.txt`.
pub(crate) fn becomes(character: char) -> Option<&'static str> {
    static LIST: LazyLock<Vec<(RangeInclusive<char>, &str)>> = LazyLock::new(list);
    let line = LIST.iter().find(|(characters, _)| characters.contains(&character));
    line.map(|&(_, becomes)| becomes)
}

fn list() -> Vec<(RangeInclusive<char>, &'static str)> {
    let line = |line: &'static str| {
        let (codes, becomes) = line.split('#').next()?.split_once(';')?;
        let (first, last) = codes.split_once("..").unwrap_or((codes, codes));
        Some((character(first)..=character(last), becomes.trim()))
    };
    include_str!("deceptive.txt").lines().filter_map(line).collect()
}

fn character(code: &str) -> char {
    let code = u32::from_str_radix(code.trim(), 16).ok();
    code.and_then(char::from_u32).expect("a code point")
}
