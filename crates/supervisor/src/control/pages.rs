//! The pages of `/metrics`: at most one a second in each format. The health endpoints need no token, so everybody who
//! reaches them may ask again and again; it costs little more than the bytes.

use super::exposition::Format;
use super::host::Host;
use super::metrics;
use super::request::Request;
use super::response::Response;
use std::time::{Duration, Instant};

/// Time for which everybody gets the same page.
const LASTS: Duration = Duration::from_secs(1);

/// The last page in each format, with its time.
#[derive(Debug, Default)]
pub(super) struct Pages([Option<(Instant, Response)>; 2]);

impl Pages {
    /// The response to a request.
    pub(super) fn answer(&mut self, request: &Request, now: Instant, host: &mut dyn Host) -> Response {
        let format = Format::accepted_by(request);
        let last = &mut self.0[usize::from(format == Format::OpenMetrics)];
        if let Some((_, page)) = last
            .as_ref()
            .filter(|(at, _)| now.saturating_duration_since(*at) < LASTS)
        {
            return page.clone();
        }
        let page = metrics::page(format, host);
        *last = Some((now, page.clone()));
        page
    }
}
