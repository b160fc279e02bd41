//! Bytes as Ruby's `String#inspect` shows a binary String.

/// In quotes, and with escapes for everything that is not printable ASCII.
pub(super) fn inspect(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for (place, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b'#' if matches!(bytes.get(place + 1), Some(b'{' | b'$' | b'@')) => text.push_str("\\#"),
            b' '..=b'~' => text.push(char::from(*byte)),
            _ => text.push_str(&escape(*byte)),
        }
    }
    text.push('"');
    text
}

fn escape(byte: u8) -> String {
    match byte {
        0x07 => "\\a".into(),
        0x08 => "\\b".into(),
        b'\t' => "\\t".into(),
        b'\n' => "\\n".into(),
        0x0b => "\\v".into(),
        0x0c => "\\f".into(),
        b'\r' => "\\r".into(),
        0x1b => "\\e".into(),
        _ => format!("\\x{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_ruby_shows_them() {
        assert_eq!("\"stop\"", inspect(b"stop"));
        assert_eq!(
            r##""a\"b\\c\#{d}\#$e\#@f#g\x00\a\b\t\n\v\f\r\e\x7F\xC3\xA4""##,
            inspect(b"a\"b\\c#{d}#$e#@f#g\0\x07\x08\t\n\x0b\x0c\r\x1b\x7f\xc3\xa4")
        );
    }
}
