//! The options of HTTP requests.

use super::flags::Flags;
use super::mix::{mix, Share};
use super::streams::{classes, Carried, Class};
use super::tls::{tls, TlsOptions, RESUMPTION, TLS};
use super::values::{as_seconds, body, maybe_seconds};
use crate::url::Url;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::time::Duration;

/// The validated command line of a run of HTTP requests; `settings` in JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Options {
    #[serde(flatten)]
    pub(crate) url: Url,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tls: Option<TlsOptions>,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) pipeline: usize,
    pub(crate) keep_alive: bool,
    /// HTTP/2: classes of connections with their numbers of streams, in order. `None`: HTTP/1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http2: Option<Vec<Class>>,
    /// `None`: until all requests have been sent.
    #[serde(serialize_with = "maybe_seconds")]
    pub(crate) duration: Option<Duration>,
    pub(crate) requests: Option<u64>,
    #[serde(serialize_with = "as_seconds")]
    pub(crate) warmup: Duration,
    /// Requests per second over all connections; `None`: closed loop.
    pub(crate) rate: Option<f64>,
    #[serde(serialize_with = "as_seconds")]
    pub(crate) timeout: Duration,
    /// Limit for good responses that count as in time.
    #[serde(serialize_with = "maybe_seconds", skip_serializing_if = "Option::is_none")]
    pub(crate) within: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Ipv4Addr>,
    pub(crate) method: String,
    #[serde(skip)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(skip)]
    pub(crate) body: Vec<u8>,
    /// Kinds of requests, instead of method, path and body; if empty, all requests are the same.
    #[serde(skip)]
    pub(crate) mix: Vec<Share>,
    #[serde(skip)]
    pub(crate) json: bool,
    #[serde(skip)]
    pub(crate) quiet: bool,
}

/// Options for requests, besides the TLS options.
const HTTP: &str = "--connections --duration --requests --warmup --rate --pipeline --no-keep-alive --http2 --streams \
                    --threads --timeout --within --source --method --header --body --path --mix --json --quiet";

pub(super) fn http(flags: Flags, mut url: Url) -> Result<Options, String> {
    flags.allow(&[HTTP, TLS, RESUMPTION], "HTTP requests")?;
    let tls = tls(&flags, url.secure)?;
    let (connections, http2) = classes(&flags)?;
    if let Some(path) = flags.path {
        url.path = path;
    }
    if flags.no_keep_alive && flags.pipeline > 1 {
        return Err("--pipeline needs keep-alive".into());
    }
    let body = flags.body.as_deref().map(body).transpose()?.unwrap_or_default();
    let default_method = if body.is_empty() { "GET" } else { "POST" };
    let default_duration = flags.requests.is_none().then_some(Duration::from_secs(4));
    Ok(Options {
        url,
        tls,
        connections,
        threads: flags.threads.min(connections),
        pipeline: flags.pipeline,
        keep_alive: !flags.no_keep_alive,
        http2,
        duration: flags.duration.or(default_duration),
        requests: flags.requests,
        warmup: flags.warmup,
        rate: flags.rate,
        timeout: flags.timeout,
        within: flags.within,
        source: flags.source,
        method: flags.method.unwrap_or_else(|| default_method.into()),
        headers: flags.headers,
        body,
        mix: flags.mix.as_deref().map(mix).transpose()?.unwrap_or_default(),
        json: flags.json,
        quiet: flags.quiet,
    })
}

impl Options {
    /// Class and number of streams of the connection with this number, counted from 0.
    pub(crate) fn carried(&self, connection: usize) -> Carried {
        Carried::of(self.http2.as_deref().unwrap_or_default(), connection)
    }
}
