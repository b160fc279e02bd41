//! Writes JSON, byte for byte as Ruby's `JSON.generate`.

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use std::io::{self, Write};

/// The value as JSON. Fails only if it has a key that is neither text nor number.
pub(super) fn generate<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(1024);
    value.serialize(&mut Serializer::with_formatter(&mut text, Floats))?;
    Ok(text)
}

/// Compact, with floats as Ruby's `Float#to_s` writes them.
struct Floats;

impl Formatter for Floats {
    fn write_f64<W: Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float(value).as_bytes())
    }
}

/// The shortest digits for this number: "0.001", "1.0", "2.0e-05".
fn float(value: f64) -> String {
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        return format!("{value:?}");
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let point = if digits.contains('.') { "" } else { ".0" };
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}{point}e{sign}{exponent:0>2}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn floats_are_those_of_ruby() {
        let fixed = [0.0, 0.0001, 0.001, 1.0, 10.0, 0.523, 123_456_789.125, 1e14];
        let scientific = [1e15, 1e20, 1.5e-5, 2e-5, 1e-9, -1e-9];

        assert_eq!(
            "[0.0,0.0001,0.001,1.0,10.0,0.523,123456789.125,100000000000000.0]".as_bytes(),
            json(&fixed)
        );
        assert_eq!(
            "[1.0e+15,1.0e+20,1.5e-05,2.0e-05,1.0e-09,-1.0e-09]".as_bytes(),
            json(&scientific)
        );
    }

    fn json(floats: &[f64]) -> Vec<u8> {
        generate(floats).expect("JSON")
    }

    #[test]
    fn texts_are_escaped_as_in_ruby() {
        let text = "a/b\u{2028}\u{7f}\0\u{8}\u{c}\n\r\t\u{1b}<é>\"\\";

        assert_eq!(
            "\"a/b\u{2028}\u{7f}\\u0000\\b\\f\\n\\r\\t\\u001b<é>\\\"\\\\\"".as_bytes(),
            generate(text).expect("JSON")
        );
    }

    #[test]
    fn there_are_no_spaces() {
        let map = BTreeMap::from([("a", vec![Some(1), None]), ("b", vec![])]);

        assert_eq!(br#"{"a":[1,null],"b":[]}"#[..], generate(&map).expect("JSON"));
    }
}
