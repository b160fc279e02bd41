//! The values of options, checked.

use std::io::Read;
use std::time::Duration;

/// Longest duration accepted: beyond a year it is a slip of the keyboard.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

pub(super) fn count(name: &str, text: &str, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(0) | Err(_) => Err(format!("{name}: {text} is not a whole number above 0")),
        Ok(_) => Err(format!("{name}: {text} is more than {most}")),
    }
}

/// Seconds, with an optional unit: `4`, `0.5`, `4s`, `500ms`, `2m`.
pub(super) fn seconds(name: &str, text: &str) -> Result<Duration, String> {
    let (number, unit) = if let Some(number) = text.strip_suffix("ms") {
        (number, 0.001)
    } else if let Some(number) = text.strip_suffix('s') {
        (number, 1.0)
    } else if let Some(number) = text.strip_suffix('m') {
        (number, 60.0)
    } else {
        (text, 1.0)
    };
    match number.parse::<f64>() {
        Ok(number) if (0.0..=MAX_SECONDS).contains(&(number * unit)) => Ok(Duration::from_secs_f64(number * unit)),
        _ => Err(format!("{name}: {text} is not a number of seconds")),
    }
}

pub(super) fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e9 => Ok(rate),
        _ => Err(format!("--rate: {text} is not a number of requests per second")),
    }
}

/// RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

pub(super) fn token(name: &str, text: &str) -> Result<String, String> {
    if is_token(text) {
        Ok(text.into())
    } else {
        Err(format!("{name}: {text} is not a token (RFC 9110 §5.6.2)"))
    }
}

pub(super) fn method(text: &str) -> Result<String, String> {
    match text {
        "CONNECT" => Err("--method: CONNECT opens a tunnel, there is nothing to measure in it".into()),
        _ if is_token(text) => Ok(text.into()),
        _ => Err(format!("--method: {text} is not a method")),
    }
}

pub(super) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once(':')
        .ok_or_else(|| format!("--header: {text} has no colon"))?;
    if !is_token(name) {
        return Err(format!("--header: {name} is not a field name"));
    }
    if value.contains(['\r', '\n', '\0']) {
        return Err(format!("--header: the value of {name} has a line break or a NUL in it"));
    }
    Ok((name.into(), value.trim().into()))
}

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
