//! The text formats of Prometheus (0.0.4) and OpenMetrics (1.0).

use super::request::Request;
use super::response::Response;
use fairlead_engine::{Histogram, Kind, Statistic};
use std::fmt::{self, Display, Write};

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const OPEN_METRICS_TYPE: &[u8] = b"application/openmetrics-text";

/// Suffix of a statistic that is shown in seconds.
const MILLISECONDS: &str = "_milliseconds";

/// A format of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Prometheus,
    OpenMetrics,
}

/// A text of metrics.
pub(super) struct Page {
    text: String,
    format: Format,
}

/// The values of one metric.
pub(super) struct Family<'a> {
    page: &'a mut Page,
    /// The name of each value.
    name: String,
    /// The numbers are milliseconds.
    in_milliseconds: bool,
}

/// The histograms of one metric.
pub(super) struct Histograms<'a> {
    page: &'a mut Page,
    name: String,
}

impl Format {
    /// The format that the client accepts.
    pub(super) fn accepted_by(request: &Request) -> Format {
        let accepted = request.field("accept").unwrap_or_default();
        let mut parts = accepted.windows(OPEN_METRICS_TYPE.len());
        if parts.any(|part| part == OPEN_METRICS_TYPE) {
            Format::OpenMetrics
        } else {
            Format::Prometheus
        }
    }
}

impl Page {
    pub(super) fn new(format: Format) -> Page {
        Page {
            text: String::with_capacity(64 * 1024),
            format,
        }
    }

    pub(super) fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.head(name, "gauge", help);
        self.family(name)
    }

    /// A gauge with a name that ends like the counts of histograms.
    pub(super) fn untyped(&mut self, name: &str, help: &str) -> Family<'_> {
        let kind = match self.format {
            Format::Prometheus => "untyped",
            Format::OpenMetrics => "unknown",
        };
        self.head(name, kind, help);
        self.family(name)
    }

    /// OpenMetrics names the family of a counter without the suffix of its values.
    pub(super) fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        let total = format!("{name}_total");
        let is_open = self.format == Format::OpenMetrics;
        self.head(if is_open { name } else { &total }, "counter", help);
        self.family(&total)
    }

    /// A statistic of an engine. A time in milliseconds is shown in seconds.
    pub(super) fn statistic(&mut self, statistic: &Statistic, prefix: &str) -> Family<'_> {
        let (name, in_milliseconds) = match statistic.name.strip_suffix(MILLISECONDS) {
            Some(name) => (format!("{prefix}{name}_seconds"), true),
            None => (format!("{prefix}{}", statistic.name), false),
        };
        let family = match statistic.kind {
            Kind::Counter => self.counter(&name, statistic.help),
            Kind::Gauge | Kind::Histogram => self.gauge(&name, statistic.help),
        };
        Family {
            in_milliseconds,
            ..family
        }
    }

    pub(super) fn histograms(&mut self, name: &str, help: &str) -> Histograms<'_> {
        self.head(name, "histogram", help);
        let name = name.to_string();
        Histograms { page: self, name }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail. No help text has a backslash, a quote or a line end.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn family(&mut self, name: &str) -> Family<'_> {
        let name = name.to_string();
        Family {
            page: self,
            name,
            in_milliseconds: false,
        }
    }

    pub(super) fn response(mut self) -> Response {
        match self.format {
            Format::Prometheus => Response::typed(PROMETHEUS, self.text),
            Format::OpenMetrics => {
                self.text.push_str("# EOF\n");
                Response::typed(OPEN_METRICS, self.text)
            }
        }
    }
}

impl Family<'_> {
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: impl Display) {
        let _ = writeln!(self.page.text, "{}{} {value}", self.name, Labels(labels));
    }

    /// The number of a statistic.
    pub(super) fn number(&mut self, labels: &[(&str, &str)], number: i64) {
        match self.in_milliseconds {
            true => self.value(labels, number as f64 / 1_000.0),
            false => self.value(labels, number),
        }
    }
}

impl Histograms<'_> {
    pub(super) fn value(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let (text, name) = (&mut self.page.text, &self.name);
        let bounds = histogram.buckets().map(|(bound, count)| (format!("{bound:?}"), count));
        for (bound, count) in bounds.chain([("+Inf".to_string(), histogram.count())]) {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("le", bound.as_str())]).collect();
            let _ = writeln!(text, "{name}_bucket{} {count}", Labels(&labels));
        }
        let labels = Labels(labels);
        let _ = writeln!(text, "{name}_sum{labels} {}", histogram.seconds());
        let _ = writeln!(text, "{name}_count{labels} {}", histogram.count());
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
