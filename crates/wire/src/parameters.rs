//! Lists of members with parameters, such as Accept and Sec-WebSocket-Extensions: `a;b=c, d;e="f,g"`.
//!
//! Members and parameters are split at separators outside quotation marks (RFC 9110 §5.6.4, §5.6.6).

use crate::fields::{is_valid_field_name, trim};
use crate::{Head, Span};
use std::borrow::Cow;

/// The values of all fields of `head` called `name` (lower case), in order.
pub(crate) fn values<'a>(head: &'a Head, bytes: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let named = move |span: Span| span.len() == name.len() && span.of(bytes).eq_ignore_ascii_case(name);
    let fields = head.fields.iter().filter(move |field| named(field.name));
    fields.map(|field| field.value.of(bytes))
}

/// The parts of `value` between separators, including empty ones, without white space around them. A quoted string
/// without an end extends to the end of the value.
pub(crate) fn pieces(value: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = outside_quotes(text, separator).unwrap_or(text.len());
        rest = text.get(end + 1..);
        Some(trim(&text[..end]))
    })
}

fn outside_quotes(text: &[u8], separator: u8) -> Option<usize> {
    let mut quoted = false;
    let mut escaped = false;
    text.iter().position(|&byte| {
        let found = !quoted && byte == separator;
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
        found
    })
}

/// `name` or `name=value`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parameter<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) value: Option<Cow<'a, [u8]>>,
}

/// Parses a parameter; `None` unless its name is a token and its value a token or a quoted token. White space around
/// the `=` is not allowed.
pub(crate) fn parameter(text: &[u8]) -> Option<Parameter<'_>> {
    let Some(equals) = memchr::memchr(b'=', text) else {
        let bare = Parameter {
            name: text,
            value: None,
        };
        return is_valid_field_name(text).then_some(bare);
    };
    let (name, value) = (&text[..equals], &text[equals + 1..]);
    let value = match value {
        [b'"', quoted @ .., b'"'] => Cow::Owned(unescaped(quoted)?),
        plain => Cow::Borrowed(plain),
    };
    let sound = is_valid_field_name(name) && is_valid_field_name(&value);
    sound.then_some(Parameter {
        name,
        value: Some(value),
    })
}

/// The content of a quoted string; `None` if its last quotation mark is escaped.
pub(crate) fn unescaped(quoted: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(quoted.len());
    let mut bytes = quoted.iter();
    while let Some(&byte) = bytes.next() {
        text.push(if byte == b'\\' { *bytes.next()? } else { byte });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(value: &str) -> Vec<&str> {
        let text = |piece| std::str::from_utf8(piece).expect("cut at ASCII");
        pieces(value.as_bytes(), b',').map(text).collect()
    }

    #[test]
    fn separators_count_only_outside_quotation_marks() {
        assert_eq!(cut(""), [""]);
        assert_eq!(cut("a"), ["a"]);
        assert_eq!(cut(" a ,\tb;c=d , ,"), ["a", "b;c=d", "", ""]);
        assert_eq!(cut(r#"a;b="c,d", e"#), [r#"a;b="c,d""#, "e"]);
        assert_eq!(cut(r#"a="\",", b"#), [r#"a="\",""#, "b"]);
        assert_eq!(cut(r#"a="\\", b"#), [r#"a="\\""#, "b"]);
        assert_eq!(cut(r#"a\", b"#), [r#"a\", b"#]);
        assert_eq!(cut(r#"a="b, c"#), [r#"a="b, c"#]);
    }

    #[test]
    fn a_parameter_is_a_token_with_an_optional_token_as_value() {
        let value = |text: &'static str| {
            let parameter = parameter(text.as_bytes())?;
            Some((parameter.name, parameter.value.map(Cow::into_owned)))
        };
        assert_eq!(value("a"), Some((&b"a"[..], None)));
        assert_eq!(value("a=b"), Some((&b"a"[..], Some(b"b".to_vec()))));
        assert_eq!(value(r#"a="b""#), Some((&b"a"[..], Some(b"b".to_vec()))));
        assert_eq!(value(r#"a="\b""#), Some((&b"a"[..], Some(b"b".to_vec()))));
        for bad in [
            "",
            "=",
            "a=",
            "=b",
            "a b",
            "a =b",
            "a= b",
            r#"a="""#,
            r#"a="b"#,
            r#"a=""#,
            r#"a="\""#,
            "a=b=c",
            r#"a="b c""#,
        ] {
            assert_eq!(value(bad), None, "{bad}");
        }
    }
}
