//! The values of options: parsed, checked, and shown in the report.

use clap::builder::RangedU64ValueParser;
use clap::ValueEnum;
use serde::{Serialize, Serializer};
use std::io::Read;
use std::str::FromStr;
use std::time::Duration;

pub(super) const MAX_CONNECTIONS: usize = 100_000;
const MAX_STREAMS: usize = 10_000;
/// Longest accepted duration: more than a year is a typing error.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// A number from 1 to `most`.
pub(super) fn count(most: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most as u64)
}

/// Seconds, with an optional unit: `4`, `0.5`, `4s`, `500ms`, `2m`.
pub(super) fn seconds(text: &str) -> Result<Duration, &'static str> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("", 1.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, &1.0));
    match number.parse::<f64>() {
        Ok(number) if (0.0..=MAX_SECONDS).contains(&(number * unit)) => Ok(Duration::from_secs_f64(number * unit)),
        _ => Err("not a number of seconds"),
    }
}

/// Seconds, more than 0.
pub(super) fn some_seconds(text: &str) -> Result<Duration, &'static str> {
    seconds(text).and_then(|duration| match duration.is_zero() {
        true => Err("must be more than 0"),
        false => Ok(duration),
    })
}

pub(super) fn rate(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err("not a number of requests per second"),
    }
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

pub(super) fn token(text: &str) -> Result<String, &'static str> {
    match is_token(text) {
        true => Ok(text.into()),
        false => Err("not a token (RFC 9110 §5.6.2)"),
    }
}

pub(super) fn method(text: &str) -> Result<String, &'static str> {
    match text {
        "CONNECT" => Err("CONNECT opens a tunnel, there is nothing to measure in it"),
        _ if is_token(text) => Ok(text.into()),
        _ => Err("not a method"),
    }
}

pub(super) fn header(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once(':').ok_or("there is no colon")?;
    if !is_token(name) {
        return Err("not a field name");
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err("there is a line break or a NUL in the value");
    }
    Ok((name.into(), value.trim().into()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
pub(crate) enum Version {
    #[value(name = "1.2")]
    #[serde(rename = "1.2")]
    Tls12,
    #[value(name = "1.3")]
    #[serde(rename = "1.3")]
    Tls13,
}

/// The value of `--streams`: `8`, `100,1x10` and the like.
#[derive(Clone, Debug)]
pub(super) struct Streams(pub(super) Vec<Item>);

/// One item of the list: `STREAMS`, or `STREAMSxCONNECTIONS`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) streams: usize,
    pub(super) connections: Option<usize>,
}

impl FromStr for Streams {
    type Err = String;

    fn from_str(text: &str) -> Result<Streams, String> {
        let item = |item: &str| {
            let (streams, connections) = match item.split_once('x') {
                Some((streams, connections)) => (streams, Some(whole(connections, MAX_CONNECTIONS)?)),
                None => (item, None),
            };
            let streams = whole(streams, MAX_STREAMS)?;
            Ok(Item { streams, connections })
        };
        text.split(',').map(item).collect::<Result<_, String>>().map(Streams)
    }
}

fn whole(text: &str, most: usize) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("\"{text}\" is not a whole number from 1 to {most}"))
}

pub(super) fn as_seconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(duration.as_secs_f64())
}

pub(super) fn maybe_seconds<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(serializer)
}

pub(super) fn is_some<T, S: Serializer>(value: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(value.is_some())
}

pub(super) fn payload_type<S: Serializer>(binary: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *binary { "binary" } else { "text" })
}

/// The text itself, or the content of the file or input that it names.
pub(super) fn body(text: &str) -> Result<Vec<u8>, String> {
    match text.strip_prefix('@') {
        None => Ok(text.into()),
        Some("-") => {
            let mut body = Vec::new();
            std::io::stdin()
                .read_to_end(&mut body)
                .map_err(|error| format!("--body: standard input: {error}"))?;
            Ok(body)
        }
        Some(file) => std::fs::read(file).map_err(|error| format!("--body: {file}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_take_units() {
        for (text, millis) in [
            ("4", 4000),
            ("0.25", 250),
            ("4s", 4000),
            ("500ms", 500),
            ("2m", 120_000),
        ] {
            assert_eq!(seconds(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "-1", "NaN", "1h", "1e12"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
