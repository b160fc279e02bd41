//! The text formats of Prometheus (0.0.4) and OpenMetrics (1.0).

use super::request::Request;
use super::response::Response;
use fairlead_engine::{Histogram, Kind, Statistic};
use std::fmt::{self, Display, Write};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const OPEN_METRICS_TYPE: &[u8] = b"application/openmetrics-text";

/// A text of metrics.
pub(super) struct Page {
    text: String,
    is_open: bool,
}

/// The values of one metric.
pub(super) struct Family<'a> {
    page: &'a mut Page,
    /// The name of each value.
    name: String,
}

impl Page {
    /// In the format that the client accepts.
    pub(super) fn accepted_by(request: &Request) -> Page {
        let accepted = request.field("accept").unwrap_or_default();
        let mut parts = accepted.windows(OPEN_METRICS_TYPE.len());
        Page {
            text: String::with_capacity(32 * 1024),
            is_open: parts.any(|part| part == OPEN_METRICS_TYPE),
        }
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.head(name, "gauge", help);
        self.family(name)
    }

    /// OpenMetrics names the family of a counter without the suffix of its values.
    fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        let total = format!("{name}_total");
        self.head(if self.is_open { name } else { &total }, "counter", help);
        self.family(&total)
    }

    pub(super) fn statistic(&mut self, statistic: &Statistic, prefix: &str) -> Family<'_> {
        let name = format!("{prefix}{}", statistic.name);
        match statistic.kind {
            Kind::Counter => self.counter(&name, statistic.help),
            Kind::Gauge | Kind::Histogram => self.gauge(&name, statistic.help),
        }
    }

    pub(super) fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let mut buckets = self.family(&format!("{name}_bucket"));
        for (bound, count) in histogram.buckets() {
            buckets.value(&[("le", &format!("{bound:?}"))], count);
        }
        buckets.value(&[("le", "+Inf")], histogram.count());
        self.family(&format!("{name}_sum")).value(&[], histogram.seconds());
        self.family(&format!("{name}_count")).value(&[], histogram.count());
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail. No help text has a backslash, a quote or a line end.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn family(&mut self, name: &str) -> Family<'_> {
        let name = name.to_string();
        Family { page: self, name }
    }

    pub(super) fn response(mut self) -> Response {
        if self.is_open {
            self.text.push_str("# EOF\n");
        }
        Response::typed(if self.is_open { OPEN_METRICS } else { PROMETHEUS }, self.text)
    }
}

impl Family<'_> {
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let _ = writeln!(self.page.text, "{}{} {value}", self.name, Labels(labels));
    }
}

/// `{name="value",…}`; empty without labels.
struct Labels<'a>(&'a [(&'a str, &'a str)]);

impl Display for Labels<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.0.iter().enumerate() {
            out.write_str(if number == 0 { "{" } else { "," })?;
            let escaped = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(out, "{name}=\"{escaped}\"")?;
        }
        if self.0.is_empty() {
            Ok(())
        } else {
            out.write_str("}")
        }
    }
}
