//! Header fields: the bytes that names and values may have, token lists, and CGI names.

/// The classes of a byte: one table lookup instead of a chain of comparisons.
const TOKEN: u8 = 1;
const VALUE: u8 = 2;

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let b = byte as u8;
        if b.is_ascii_alphanumeric() || is_token_mark(b) {
            classes[byte] |= TOKEN;
        }
        if b == b'\t' || (b >= b' ' && b != 0x7f) {
            classes[byte] |= VALUE;
        }
        byte += 1;
    }
    classes
};

const fn is_token_mark(byte: u8) -> bool {
    matches!(
        byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
    )
}

/// Returns true if `byte` is a `tchar` (RFC 9110 §5.6.2).
#[inline]
pub fn is_token_byte(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & TOKEN != 0
}

/// Returns true if a field value of a request may contain `byte`: HTAB, SP, visible ASCII or obs-text (RFC 9110 §5.5).
#[inline]
pub fn is_value_byte(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & VALUE != 0
}

/// Returns true if `name` is a token, like field names and methods (RFC 9110 §5.1).
pub fn is_valid_field_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|&byte| is_token_byte(byte))
}

/// Returns true if an application may send `value` in a response: no NUL, CR or LF (Rack SPEC). These bytes would split
/// the response; other control characters are the application's choice.
pub fn is_valid_field_value(value: &[u8]) -> bool {
    memchr::memchr3(b'\r', b'\n', 0, value).is_none()
}

/// Returns true if `name` has an underscore, so that the name with dashes has the same CGI name.
pub fn has_underscore(name: &[u8]) -> bool {
    memchr::memchr(b'_', name).is_some()
}

/// Replaces `out` by the CGI name of a request field: `HTTP_` and the name in upper case, with dashes as underscores.
pub fn env_key(name: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"HTTP_");
    out.extend(name.iter().map(|&byte| match byte {
        b'-' => b'_',
        other => other.to_ascii_uppercase(),
    }));
}

/// The members of a comma-separated list, without white space around them; empty members are skipped (RFC 9110 §5.6.1).
pub fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value
        .split(|&byte| byte == b',')
        .map(trim)
        .filter(|member| !member.is_empty())
}

/// Returns true if a comma-separated list contains `token`, ignoring case.
pub fn has_member(value: &[u8], token: &[u8]) -> bool {
    members(value).any(|member| member.eq_ignore_ascii_case(token))
}

/// `bytes` without optional white space (SP, HTAB) at either end (RFC 9110 §5.6.3).
#[inline]
pub fn trim(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes;
    while let [b' ' | b'\t', tail @ ..] = rest {
        rest = tail;
    }
    while let [front @ .., b' ' | b'\t'] = rest {
        rest = front;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens() {
        assert!(is_valid_field_name(b"X-My.Header!#$%&'*+^_`|~09"));
        for bad in ["", " ", "a b", "a:", "a\r", "(a)", "a/b", "a=b", "ä", "a\u{7f}", "a\""] {
            assert!(!is_valid_field_name(bad.as_bytes()), "{bad:?}");
        }
    }

    #[test]
    fn request_values_may_contain_tabs_and_high_bytes_but_no_controls() {
        let refused: Vec<u8> = (0..=255).filter(|&byte| !is_value_byte(byte)).collect();
        let expected: Vec<u8> = (0..=8).chain(10..=31).chain([127]).collect();
        assert_eq!(refused, expected);
    }

    #[test]
    fn response_values_must_not_split_the_response() {
        assert!(is_valid_field_value(b"text/html; charset=utf-8"));
        assert!(is_valid_field_value(b""));
        assert!(is_valid_field_value(b"caf\xc3\xa9"));
        assert!(!is_valid_field_value(b"a\nb"));
        assert!(!is_valid_field_value(b"a\rb"));
        assert!(!is_valid_field_value(b"a\0"));
    }

    #[test]
    fn cgi_names() {
        let mut key = b"left over".to_vec();
        env_key(b"X-Forwarded-For", &mut key);
        assert_eq!(key, b"HTTP_X_FORWARDED_FOR");
        assert!(has_underscore(b"X-Forwarded_For"));
        assert!(!has_underscore(b"X-Forwarded-For"));
    }

    #[test]
    fn lists_ignore_case_white_space_and_empty_members() {
        let value = b" ,Keep-Alive ,\tUpgrade,, ";
        let found: Vec<&[u8]> = members(value).collect();
        assert_eq!(found, [&b"Keep-Alive"[..], b"Upgrade"]);
        assert!(has_member(value, b"upgrade"));
        assert!(!has_member(value, b"up"));
        assert!(!has_member(b"keep-alive close", b"close"));
    }

    #[test]
    fn trimming_removes_only_spaces_and_tabs() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b" \t "), b"");
        assert_eq!(trim(b"\x0ba"), b"\x0ba");
    }
}
