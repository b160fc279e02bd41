//! The report as one JSON document (RFC 8259). Its keys are part of the public interface: see the crate's documentation.

use crate::options::Options;
use crate::report::PERCENTILES;
use crate::run::Measured;
use crate::tally::Failure;
use hdrhistogram::Histogram;
use std::fmt::{Display, Write};

/// The whole document, without a line break at its end.
pub(crate) fn document(options: &Options, measured: &Measured) -> String {
    let tally = &measured.tally;
    let mut json = Writer::default();
    json.object(|json| {
        json.string("version", env!("CARGO_PKG_VERSION"));
        settings(json, options);
        json.float("seconds", measured.seconds());
        json.number("interrupted", measured.stopped);
        json.number("gave_up", measured.gave_up);
        json.key("requests").object(|json| {
            json.number("answered", tally.answered());
            json.float("per_second", measured.per_second(tally.answered()));
            json.number("failed", tally.failed());
            json.number("unanswered", tally.unanswered);
            json.number("unsent", tally.unsent);
            let waiting = tally.unanswered + tally.unsent > 0;
            json.optional("longest_wait", waiting.then_some(tally.longest_wait as f64 / 1e9));
        });
        json.key("bytes").object(|json| {
            json.number("read", tally.bytes);
            json.float("per_second", measured.per_second(tally.bytes));
        });
        json.key("statuses").object(|json| {
            (1..)
                .zip(tally.classes)
                .for_each(|(class, count)| json.number(&format!("{class}xx"), count));
        });
        json.key("errors").object(|json| {
            Failure::ALL
                .iter()
                .for_each(|why| json.number(why.name(), tally.failures[*why as usize]));
            json.number("status", tally.refusals());
        });
        latency(json, measured);
        connections(json, measured);
    });
    json.text
}

fn settings(json: &mut Writer, options: &Options) {
    json.key("settings").object(|json| {
        json.string("url", &options.url.text);
        json.string("method", &options.method);
        json.string("path", &options.url.path);
        json.number("connections", options.connections);
        json.number("threads", options.threads);
        json.number("pipeline", options.pipeline);
        json.number("keep_alive", options.keep_alive);
        json.optional("duration", options.duration.map(|duration| duration.as_secs_f64()));
        match options.requests {
            Some(requests) => json.number("requests", requests),
            None => json.number("requests", "null"),
        }
        json.optional("rate", options.rate);
        json.float("warmup", options.warmup.as_secs_f64());
        json.float("timeout", options.timeout.as_secs_f64());
    });
}

fn latency(json: &mut Writer, measured: &Measured) {
    json.key("latency_ms").object(|json| {
        json.optional(
            "expected_interval",
            measured.expected_interval.map(|nanos| nanos as f64 / 1e6),
        );
        distribution(json, "raw", measured.tally.raw());
        distribution(json, "corrected", &measured.tally.corrected(measured.expected_interval));
    });
}

fn distribution(json: &mut Writer, key: &str, latencies: &Histogram<u64>) {
    let known = |nanos: f64| (!latencies.is_empty()).then_some(nanos / 1e6);
    json.key(key).object(|json| {
        json.optional("min", known(latencies.min() as f64));
        json.optional("mean", known(latencies.mean()));
        for percent in PERCENTILES {
            let key = format!("p{percent}").replace('.', "_");
            json.optional(&key, known(latencies.value_at_quantile(percent / 100.0) as f64));
        }
        json.optional("max", known(latencies.max() as f64));
    });
}

fn connections(json: &mut Writer, measured: &Measured) {
    let tally = &measured.tally;
    let fairness = tally.fairness();
    json.key("fairness").object(|json| {
        json.optional("jain", fairness.jain);
        json.number("least", fairness.least);
        json.number("most", fairness.most);
        json.optional("least_to_most", fairness.least_to_most());
        json.key("never_served")
            .array(&fairness.never_served, |json, number| json.raw(number));
    });
    json.number("connections_opened", tally.opened);
    let numbered: Vec<_> = (1..).zip(&tally.connections).collect();
    json.key("connections").array(&numbered, |json, (number, served)| {
        json.object(|json| {
            json.number("connection", number);
            json.number("answered", served.answered);
            json.number("failed", served.failed);
        });
    });
}

/// Writes values one after the other and puts the commas between them.
#[derive(Debug, Default)]
struct Writer {
    text: String,
}

impl Writer {
    fn object(&mut self, members: impl FnOnce(&mut Writer)) {
        self.text.push('{');
        members(self);
        self.text.push('}');
    }

    fn array<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Writer, &T)) {
        self.text.push('[');
        for each in items {
            self.comma();
            item(self, each);
        }
        self.text.push(']');
    }

    fn key(&mut self, key: &str) -> &mut Writer {
        self.comma();
        self.quote(key);
        self.text.push(':');
        self
    }

    fn string(&mut self, key: &str, value: &str) {
        self.key(key).quote(value);
    }

    /// A value whose `Display` is its JSON: booleans, integers.
    fn number(&mut self, key: &str, value: impl Display) {
        self.key(key).raw(value);
    }

    /// Always with a fraction or an exponent, so that readers with several types of numbers see one.
    fn float(&mut self, key: &str, value: f64) {
        self.number(key, format_args!("{value:?}"));
    }

    fn optional(&mut self, key: &str, value: Option<f64>) {
        match value {
            Some(value) => self.float(key, value),
            None => self.number(key, "null"),
        }
    }

    fn raw(&mut self, value: impl Display) {
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
