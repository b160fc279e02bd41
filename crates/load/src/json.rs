//! Reports as one JSON document (RFC 8259). Their keys are part of the public interface: see the crate's documentation.
//! Here are the writer and the parts that all documents have.

pub(crate) mod http;
pub(crate) mod real_time;

use crate::fairness::{Fairness, Served};
use crate::latencies::{Latencies, PERCENTILES};
use crate::pacing::Nanos;
use hdrhistogram::Histogram;
use std::fmt::{Display, Write};

fn latency(json: &mut Writer, latencies: &Latencies, expected_interval: Option<Nanos>) {
    json.key("latency_ms").object(|json| {
        json.optional("expected_interval", expected_interval.map(|nanos| nanos as f64 / 1e6));
        distribution(json, "raw", latencies.raw());
        distribution(json, "corrected", &latencies.corrected(expected_interval));
    });
}

fn distribution(json: &mut Writer, key: &str, latencies: &Histogram<u64>) {
    json.key(key).object(|json| distribution_members(json, latencies));
}

fn distribution_members(json: &mut Writer, latencies: &Histogram<u64>) {
    let known = |nanos: f64| (!latencies.is_empty()).then_some(nanos / 1e6);
    json.optional("min", known(latencies.min() as f64));
    json.optional("mean", known(latencies.mean()));
    for percent in PERCENTILES {
        let key = format!("p{percent}").replace('.', "_");
        json.optional(&key, known(latencies.value_at_quantile(percent / 100.0) as f64));
    }
    json.optional("max", known(latencies.max() as f64));
}

fn fairness(json: &mut Writer, connections: &[Served]) {
    let fairness = Fairness::of(connections);
    json.key("fairness").object(|json| {
        json.optional("jain", fairness.jain);
        json.number("least", fairness.least);
        json.number("most", fairness.most);
        json.optional("least_to_most", fairness.least_to_most());
        json.key("never_served")
            .array(&fairness.never_served, |json, number| json.raw(number));
    });
}

/// Writes values one after the other and puts the commas between them.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    text: String,
}

impl Writer {
    pub(crate) fn object(&mut self, members: impl FnOnce(&mut Writer)) {
        self.text.push('{');
        members(self);
        self.text.push('}');
    }

    pub(crate) fn array<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Writer, &T)) {
        self.text.push('[');
        for each in items {
            self.comma();
            item(self, each);
        }
        self.text.push(']');
    }

    pub(crate) fn key(&mut self, key: &str) -> &mut Writer {
        self.comma();
        self.quote(key);
        self.text.push(':');
        self
    }

    pub(crate) fn string(&mut self, key: &str, value: &str) {
        self.key(key).quote(value);
    }

    /// A value whose `Display` is its JSON: booleans, integers.
    pub(crate) fn number(&mut self, key: &str, value: impl Display) {
        self.key(key).raw(value);
    }

    /// Always with a fraction or an exponent, so that readers with several types of numbers see one.
    pub(crate) fn float(&mut self, key: &str, value: f64) {
        self.number(key, format_args!("{value:?}"));
    }

    pub(crate) fn optional(&mut self, key: &str, value: Option<f64>) {
        match value {
            Some(value) => self.float(key, value),
            None => self.number(key, "null"),
        }
    }

    pub(crate) fn raw(&mut self, value: impl Display) {
        let _ = write!(self.text, "{value}");
    }

    fn comma(&mut self) {
        if !self.text.ends_with(['{', '[', ':']) && !self.text.is_empty() {
            self.text.push(',');
        }
    }

    /// RFC 8259 §7.
    fn quote(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            match character {
                '"' | '\\' => self.text.extend(['\\', character]),
                '\0'..='\x1f' => self.raw(format_args!("\\u{:04x}", u32::from(character))),
                _ => self.text.push(character),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};

    #[test]
    fn the_writer_writes_json() {
        let mut writer = Writer::default();
        writer.object(|json| {
            json.string("a \"quoted\" \\ key", "line\nbreak \u{1} [{é");
            json.float("b", 2.0);
            json.optional("c", None);
            json.key("d")
                .array(&[1, 2], |json, item| json.object(|json| json.number("x", item)));
            json.key("e").array(&[0; 0], |json, item| json.raw(item));
            json.key("f").object(|_| {});
            json.number("g", true);
        });
        let read: Value = serde_json::from_str(&writer.text).expect(&writer.text);
        let expected = json!({
            "a \"quoted\" \\ key": "line\nbreak \u{1} [{é", "b": 2.0, "c": null,
            "d": [{"x": 1}, {"x": 2}], "e": [], "f": {}, "g": true,
        });
        assert_eq!(read, expected);
    }
}
