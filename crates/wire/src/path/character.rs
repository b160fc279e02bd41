//! The characters that a path may have, at any position.

use super::PathFault;

/// The action that a byte requires.
#[derive(Clone, Copy)]
pub(super) enum Class {
    /// Nothing.
    Plain,
    /// Check the name that ends here.
    Slash,
    /// Check the name for the form of a short one.
    Tilde,
    /// Check the path as UTF-8.
    NonAscii,
    /// Refuse the path.
    Refused(PathFault),
}

/// The class of each byte.
pub(super) const CLASSES: [Class; 256] = classes();

const fn classes() -> [Class; 256] {
    let mut classes = [Class::Plain; 256];
    let mut byte = 0;
    while byte < classes.len() {
        classes[byte] = class(byte as u8);
        byte += 1;
    }
    classes
}

const fn class(byte: u8) -> Class {
    match byte {
        b'/' => Class::Slash,
        b'~' => Class::Tilde,
        0 => Class::Refused(PathFault::NulByte),
        ..b' ' | 0x7f => Class::Refused(PathFault::ControlCharacter),
        b'\\' => Class::Refused(PathFault::Backslash),
        b':' => Class::Refused(PathFault::Colon),
        b'<' | b'>' | b'"' | b'|' | b'?' | b'*' => Class::Refused(PathFault::ReservedCharacter),
        0x80.. => Class::NonAscii,
        _ => Class::Plain,
    }
}

/// Checks a path with bytes beyond ASCII.
pub(super) fn check_text(path: &[u8]) -> Result<(), PathFault> {
    let text = std::str::from_utf8(path).map_err(|_| PathFault::InvalidUtf8)?;
    text.chars().try_for_each(|character| match character {
        '\u{80}'..='\u{9f}' => Err(PathFault::ControlCharacter),
        _ if is_deceptive(character) => Err(PathFault::DeceptiveCharacter),
        _ => Ok(()),
    })
}

/// Returns true if some file system or reader treats a character beyond ASCII as equivalent to another one.
fn is_deceptive(character: char) -> bool {
    is_dot_or_slash(character) || is_invisible(character)
}

/// Characters that are dots, slashes or backslashes in other contexts.
#[rustfmt::skip]
fn is_dot_or_slash(character: char) -> bool {
    matches!(
        character,
        // Equivalents by compatibility folding (Unicode NFKC), which ZFS can do: leaders, a/c, a/s, c/o, c/u, small and
        // full width.
        '\u{2024}'..='\u{2026}' | '\u{2100}' | '\u{2101}' | '\u{2105}' | '\u{2106}'
        | '\u{fe19}' | '\u{fe30}' | '\u{fe52}' | '\u{fe68}' | '\u{ff0e}' | '\u{ff0f}' | '\u{ff3c}'
        // Characters that look alike, which conversions to code pages use: fraction, division, set minus, and the big
        // ones.
        | '\u{2044}' | '\u{2215}' | '\u{2216}' | '\u{29f5}' | '\u{29f8}' | '\u{29f9}'
        // The yen and won signs, which are at the position of the backslash in code pages 932 and 949.
        | '\u{a5}' | '\u{20a9}'
        // Private use: Cygwin and clients of Windows file servers write these instead of characters that Windows
        // forbids.
        | '\u{f000}'..='\u{f0ff}'
    )
}

/// Characters that are invisible, or change how others are shown.
#[rustfmt::skip]
fn is_invisible(character: char) -> bool {
    matches!(
        character,
        // Default_Ignorable_Code_Point of Unicode. HFS+, and ext4 with case folding, ignore these when they compare
        // names: `.g\u{200c}it` is `.git`.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        // Separators of lines and paragraphs, interlinear annotation.
        | '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}'
    )
}
