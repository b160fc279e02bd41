//! The times of responses by method, status, protocol and scheme, for `http_server_request_duration_seconds`.
//!
//! The memory holds a fixed number of series. The first response of a kind claims one, for good: by a single
//! compare-and-swap, without a lock. Once all are taken, responses of further kinds count together, by the class of their
//! status, so clients cannot fill the memory with unusual methods. Nothing is ever cleared: workers with the same table add to
//! it, and so does a replacement of a worker.

use super::histogram::{AtomicHistogram, Histogram, RESPONSE_BOUNDS};
use fairlead_wire::Version;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use std::time::Duration;

/// Number of series in a table.
const SERIES: usize = 128;

/// First digits of statuses.
const CLASSES: usize = 10;

/// Methods with a series of their own (RFC 9110 §9, RFC 5789, QUERY); the first stands for all others.
pub(crate) const METHODS: [&str; 11] = [
    "_OTHER", "GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "CONNECT", "TRACE",
];

/// A kind of request: its method and scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestKind {
    method: u8,
    is_secure: bool,
}

/// A kind of response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResponseKind {
    /// The request.
    pub request: RequestKind,
    /// Its version.
    pub version: Version,
    /// The status.
    pub status: u16,
}

/// A series of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseSeries {
    /// One kind.
    Of(ResponseKind),
    /// All kinds without a series, with a status that begins with this digit.
    Others(u16),
}

/// A table, shared by workers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Responses {
    /// [`ResponseKind::key`] of each series; 0 if it is free.
    keys: [AtomicU32; SERIES],
    series: [AtomicHistogram; SERIES],
    /// All kinds that found no free series, by the first digit of the status, so that errors remain visible.
    others: [AtomicHistogram; CLASSES],
}

impl RequestKind {
    /// Number of kinds, for tables.
    pub(crate) const COUNT: usize = 2 * METHODS.len();

    /// The kind of a request with this method.
    pub fn new(method: &[u8], is_secure: bool) -> RequestKind {
        let known = METHODS.iter().position(|known| known.as_bytes() == method);
        RequestKind {
            method: known.unwrap_or(0) as u8,
            is_secure,
        }
    }

    /// All kinds, by their index.
    pub(crate) fn all() -> impl Iterator<Item = RequestKind> {
        let methods = 0..METHODS.len() as u8;
        methods.flat_map(|method| [false, true].map(|is_secure| RequestKind { method, is_secure }))
    }

    pub(crate) fn index(self) -> usize {
        2 * usize::from(self.method) + usize::from(self.is_secure)
    }

    /// The method, `_OTHER` for an unknown one.
    pub fn method(self) -> &'static str {
        METHODS.get(usize::from(self.method)).copied().unwrap_or(METHODS[0])
    }

    /// The scheme.
    pub fn scheme(self) -> &'static str {
        if self.is_secure {
            "https"
        } else {
            "http"
        }
    }
}

impl ResponseKind {
    /// The version of the protocol, as OpenTelemetry writes it.
    pub fn version(self) -> &'static str {
        match self.version {
            Version::Http10 => "1.0",
            Version::Http11 => "1.1",
            Version::Http2 => "2",
        }
    }

    /// A number other than 0.
    fn key(self) -> u32 {
        let version = match self.version {
            Version::Http10 => 1,
            Version::Http11 => 2,
            Version::Http2 => 3,
        };
        u32::from(self.status) | version << 16 | (self.request.index() as u32) << 18
    }

    fn of_key(key: u32) -> Option<ResponseKind> {
        Some(ResponseKind {
            request: RequestKind::all().nth((key >> 18) as usize)?,
            version: match key >> 16 & 3 {
                1 => Version::Http10,
                2 => Version::Http11,
                3 => Version::Http2,
                _ => return None,
            },
            status: key as u16,
        })
    }
}

impl Responses {
    /// An empty table.
    pub(crate) const fn new() -> Responses {
        Responses {
            keys: [const { AtomicU32::new(0) }; SERIES],
            series: [const { AtomicHistogram::new() }; SERIES],
            others: [const { AtomicHistogram::new() }; CLASSES],
        }
    }

    /// Counts a response.
    pub(crate) fn count(&self, kind: ResponseKind, time: Duration) {
        let class = usize::from(kind.status / 100).min(CLASSES - 1);
        let series = self.claim(kind.key()).unwrap_or(&self.others[class]);
        series.count_within(&RESPONSE_BOUNDS, time);
    }

    /// Finds the series of a key, or takes a free one. The search begins at a place that depends on the key.
    fn claim(&self, key: u32) -> Option<&AtomicHistogram> {
        let first = (key.wrapping_mul(0x9E37_79B9) >> 25) as usize;
        let mut places = (0..SERIES).map(|step| (first + step) % SERIES);
        let place = places.find(|place| {
            let own = &self.keys[*place];
            match own.load(Relaxed) {
                0 => own
                    .compare_exchange(0, key, AcqRel, Acquire)
                    .map_or_else(|other| other == key, |_| true),
                other => other == key,
            }
        })?;
        Some(&self.series[place])
    }

    /// The series that are in use.
    pub(crate) fn load(&self) -> impl Iterator<Item = (ResponseSeries, Histogram)> + '_ {
        let own = self.keys.iter().zip(&self.series).filter_map(|(key, series)| {
            let kind = ResponseKind::of_key(key.load(Acquire))?;
            Some((ResponseSeries::Of(kind), series))
        });
        let others = (0..).map(ResponseSeries::Others).zip(&self.others);
        let all = own.chain(others);
        let loaded = all.map(|(kind, series)| (kind, series.load_within(&RESPONSE_BOUNDS, Relaxed)));
        loaded.filter(|(_, histogram)| histogram.count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Barrier;

    fn kind(method: &str, status: u16) -> ResponseKind {
        ResponseKind {
            request: RequestKind::new(method.as_bytes(), false),
            version: Version::Http11,
            status,
        }
    }

    fn counts(responses: &Responses) -> BTreeMap<String, u64> {
        let shown = |series: ResponseSeries| match series {
            ResponseSeries::Others(class) => format!("others {class}xx"),
            ResponseSeries::Of(kind) => format!(
                "{} {} {} {}",
                kind.request.method(),
                kind.request.scheme(),
                kind.version(),
                kind.status
            ),
        };
        let all = responses.load();
        all.map(|(series, times)| (shown(series), times.count())).collect()
    }

    #[test]
    fn each_kind_has_a_series_of_its_own_and_unknown_methods_share_one() {
        let responses = Responses::new();
        for method in ["GET", "GET", "get", "BREW", "QUERY"] {
            responses.count(kind(method, 200), Duration::from_millis(5));
        }
        let secure = RequestKind::new(b"GET", true);
        let version = Version::Http2;
        responses.count(
            ResponseKind {
                request: secure,
                version,
                status: 200,
            },
            Duration::ZERO,
        );
        responses.count(kind("GET", 599), Duration::ZERO);
        let expected = [
            ("GET http 1.1 200", 2),
            ("GET http 1.1 599", 1),
            ("GET https 2 200", 1),
            ("QUERY http 1.1 200", 1),
            ("_OTHER http 1.1 200", 2),
        ];
        assert_eq!(
            counts(&responses),
            expected.map(|(name, count)| (name.to_string(), count)).into()
        );
    }

    #[test]
    fn every_kind_is_found_again_by_its_key() {
        for request in RequestKind::all() {
            for version in [Version::Http10, Version::Http11, Version::Http2] {
                let kind = ResponseKind {
                    request,
                    version,
                    status: 999,
                };
                assert_eq!(ResponseKind::of_key(kind.key()), Some(kind));
            }
        }
        assert_eq!(ResponseKind::of_key(0), None);
        assert_eq!(RequestKind::all().count(), RequestKind::COUNT);
        assert!(RequestKind::all()
            .enumerate()
            .all(|(index, kind)| kind.index() == index));
    }

    #[test]
    fn kinds_without_a_series_count_together() {
        let responses = Responses::new();
        let statuses = 100..100 + SERIES as u16 + 7;
        for _ in 0..2 {
            statuses
                .clone()
                .for_each(|status| responses.count(kind("GET", status), Duration::ZERO));
        }
        let counts = counts(&responses);
        assert_eq!((counts.len(), counts["others 2xx"]), (SERIES + 1, 14));
        responses.count(kind("GET", 503), Duration::ZERO);
        assert_eq!(self::counts(&responses)["others 5xx"], 1, "errors remain visible");
    }

    #[test]
    fn threads_that_claim_at_the_same_time_lose_no_count_and_share_series() {
        let (responses, gate) = (Responses::new(), Barrier::new(4));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    gate.wait();
                    (200..250).for_each(|status| responses.count(kind("GET", status), Duration::ZERO));
                });
            }
        });
        let counts = counts(&responses);
        assert_eq!(counts.len(), 50);
        assert!(counts.values().all(|count| *count == 4), "{counts:?}");
    }

    #[test]
    fn the_bounds_are_those_of_opentelemetry() {
        let responses = Responses::new();
        responses.count(kind("GET", 200), Duration::from_millis(75));
        let (_, times) = responses.load().next().expect("a series");
        let buckets: Vec<String> = times
            .buckets()
            .map(|(bound, count)| format!("{bound}:{count}"))
            .collect();
        let expected = "0.005:0 0.01:0 0.025:0 0.05:0 0.075:1 0.1:1 0.25:1 0.5:1 0.75:1 1:1 2.5:1 5:1 7.5:1 10:1";
        assert_eq!(buckets.join(" "), expected);
    }
}
