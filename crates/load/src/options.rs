//! What the user asked for: the command line, its help, its checks.

mod help;
mod mix;
mod real_time;
mod streams;
mod tls;
mod values;

pub(crate) use help::HELP;
pub(crate) use mix::{names, Share};
pub(crate) use real_time::{Broadcast, Echo, RealTime, Task, Transport};
pub(crate) use streams::{Carried, Class};
pub(crate) use tls::{TlsOptions, Trust, Version};

use crate::url::{request_path, Url};
use lexopt::prelude::{Long, Short, Value};
use std::time::Duration;
use tls::{RESUMPTION, TLS};
use values::{body, count, header, method, rate, seconds, token};

/// The validated command line of a run of HTTP requests.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) url: Url,
    pub(crate) tls: TlsOptions,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) pipeline: usize,
    pub(crate) keep_alive: bool,
    /// HTTP/2: how many connections have how many streams, in order. `None`: HTTP/1.1.
    pub(crate) http2: Option<Vec<Class>>,
    /// `None`: until the requests are used up.
    pub(crate) duration: Option<Duration>,
    pub(crate) requests: Option<u64>,
    pub(crate) warmup: Duration,
    /// Requests per second over all connections; `None`: closed loop.
    pub(crate) rate: Option<f64>,
    pub(crate) timeout: Duration,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Kinds of requests, in place of method, path and body; empty: all are the same.
    pub(crate) mix: Vec<Share>,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Http(Box<Options>),
    RealTime(Box<RealTime>),
}

const MAX_CONNECTIONS: usize = 100_000;
const MAX_PIPELINE: usize = 1_000;
const MAX_THREADS: usize = 256;
const MAX_MESSAGES: usize = 100_000_000;
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Reads the arguments that follow `fairlead bench`.
pub(crate) fn parse(args: &[String]) -> Result<Command, String> {
    let mut draft = Draft::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let name = match arg {
            Short(letter) => long_name(letter)?.to_owned(),
            Long(name) => format!("--{name}"),
            Value(url) => {
                draft.url(url.to_string_lossy().into_owned())?;
                continue;
            }
        };
        if name == "--help" {
            return Ok(Command::Help);
        }
        draft.option(&name, &mut parser)?;
        draft.given.push(name);
    }
    draft.finish()
}

fn long_name(letter: char) -> Result<&'static str, String> {
    Ok(match letter {
        'c' => "--connections",
        'd' => "--duration",
        'n' => "--requests",
        'm' => "--method",
        'H' => "--header",
        'q' => "--quiet",
        'k' => "--insecure",
        'h' => "--help",
        _ => return Err(format!("unknown option -{letter}")),
    })
}

/// What goes with HTTP requests.
const HTTP: &[&str] = &[
    "--connections",
    "--duration",
    "--requests",
    "--warmup",
    "--rate",
    "--pipeline",
    "--no-keep-alive",
    "--http2",
    "--streams",
    "--threads",
    "--timeout",
    "--method",
    "--header",
    "--body",
    "--path",
    "--mix",
    "--json",
    "--quiet",
];

/// What has been read of the command line so far.
#[derive(Default)]
struct Draft {
    url: Option<String>,
    path: Option<String>,
    connections: Option<usize>,
    threads: Option<usize>,
    pipeline: Option<usize>,
    close: bool,
    http2: bool,
    streams: Option<Vec<streams::Item>>,
    duration: Option<Duration>,
    requests: Option<u64>,
    warmup: Option<Duration>,
    rate: Option<f64>,
    timeout: Option<Duration>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    mix: Option<Vec<Share>>,
    json: bool,
    quiet: bool,
    size: Option<usize>,
    binary: Option<bool>,
    deflate: bool,
    protocol: Option<String>,
    welcome: Option<String>,
    hello: Option<String>,
    ready: Option<String>,
    broadcast: bool,
    publishers: Option<usize>,
    messages: Option<usize>,
    template: Option<String>,
    sse: bool,
    publish: Option<String>,
    idle: bool,
    insecure: bool,
    cacert: Option<String>,
    cert: Option<String>,
    key: Option<String>,
    tls_version: Option<tls::Version>,
    resume: Option<bool>,
    /// The names of all options given.
    given: Vec<String>,
}

impl Draft {
    fn url(&mut self, url: String) -> Result<(), String> {
        match &self.url {
            None => self.url = Some(url),
            Some(_) => return Err(format!("one URL at a time: {url} is too much")),
        }
        Ok(())
    }

    fn option(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<(), String> {
        let mut value = || -> Result<String, String> {
            let value = parser.value().map_err(|_| format!("{name} needs a value"))?;
            value.into_string().map_err(|_| format!("{name}: not valid UTF-8"))
        };
        match name {
            "--connections" => self.connections = Some(count(name, &value()?, MAX_CONNECTIONS)?),
            "--duration" => self.duration = Some(seconds(name, &value()?)?),
            "--requests" => self.requests = Some(count(name, &value()?, usize::MAX)? as u64),
            "--warmup" => self.warmup = Some(seconds(name, &value()?)?),
            "--rate" => self.rate = Some(rate(&value()?)?),
            "--pipeline" => self.pipeline = Some(count(name, &value()?, MAX_PIPELINE)?),
            "--no-keep-alive" => self.close = true,
            "--http2" => self.http2 = true,
            "--streams" => self.streams = Some(streams::items(&value()?)?),
            "--threads" => self.threads = Some(count(name, &value()?, MAX_THREADS)?),
            "--timeout" => self.timeout = Some(seconds(name, &value()?)?),
            "--method" => self.method = Some(method(&value()?)?),
            "--header" => self.headers.push(header(&value()?)?),
            "--body" => self.body = Some(body(&value()?)?),
            "--mix" => self.mix = Some(mix::mix(&value()?)?),
            "--path" => self.path = Some(request_path(&value()?)?),
            "--json" => self.json = true,
            "--quiet" => self.quiet = true,
            "--size" => self.size = Some(count(name, &value()?, MAX_MESSAGE_BYTES)?),
            "--text" | "--binary" => self.binary = Some(name == "--binary"),
            "--deflate" => self.deflate = true,
            "--protocol" => self.protocol = Some(token(name, &value()?)?),
            "--welcome" => self.welcome = Some(value()?),
            "--hello" => self.hello = Some(value()?),
            "--ready" => self.ready = Some(value()?),
            "--broadcast" => self.broadcast = true,
            "--publishers" => self.publishers = Some(count(name, &value()?, MAX_CONNECTIONS)?),
            "--messages" => self.messages = Some(count(name, &value()?, MAX_MESSAGES)?),
            "--template" => self.template = Some(value()?),
            "--sse" => self.sse = true,
            "--publish" => self.publish = Some(value()?),
            "--idle" => self.idle = true,
            "--insecure" => self.insecure = true,
            "--cacert" => self.cacert = Some(value()?),
            "--cert" => self.cert = Some(value()?),
            "--key" => self.key = Some(value()?),
            "--tls-version" => self.tls_version = Some(tls::version(&value()?)?),
            "--resume" | "--no-resume" => self.resume = Some(name == "--resume"),
            _ => return Err(format!("unknown option {name}")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Command, String> {
        let url = Url::parse(self.url.as_deref().ok_or("which URL?")?)?;
        let real_time = url.websocket || self.sse || self.idle || self.broadcast;
        if self.duration.is_some_and(|duration| duration.is_zero()) {
            return Err("--duration must be more than 0".into());
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err("--timeout must be more than 0".into());
        }
        if real_time {
            return self.real_time(url).map(|options| Command::RealTime(Box::new(options)));
        }
        self.allow(&[HTTP, TLS, RESUMPTION].concat(), "HTTP requests")?;
        self.http(url).map(|options| Command::Http(Box::new(options)))
    }

    /// Refuses options that mean nothing in this kind of run.
    fn allow(&self, options: &[&str], kind: &str) -> Result<(), String> {
        match self.given.iter().find(|name| !options.contains(&name.as_str())) {
            Some(name) => Err(format!("{name} does not go with {kind}")),
            None => Ok(()),
        }
    }

    fn http(self, mut url: Url) -> Result<Options, String> {
        let tls = self.tls(url.secure)?;
        let (connections, http2) = self.streams()?;
        if let Some(path) = self.path {
            url.path = path;
        }
        let pipeline = self.pipeline.unwrap_or(1);
        if self.close && pipeline > 1 {
            return Err("--pipeline needs keep-alive".into());
        }
        if self.mix.is_some() {
            let others = ["--pipeline", "--method", "--body", "--path"];
            if let Some(name) = self.given.iter().find(|name| others.contains(&name.as_str())) {
                return Err(format!("{name} does not go with --mix"));
            }
        }
        let body = self.body.unwrap_or_default();
        let default_method = if body.is_empty() { "GET" } else { "POST" };
        let default_duration = self.requests.is_none().then_some(Duration::from_secs(4));
        Ok(Options {
            url,
            tls,
            connections,
            threads: self.threads.unwrap_or(1).min(connections),
            pipeline,
            keep_alive: !self.close,
            http2,
            duration: self.duration.or(default_duration),
            requests: self.requests,
            warmup: self.warmup.unwrap_or_default(),
            rate: self.rate,
            timeout: self.timeout.unwrap_or(Duration::from_secs(10)),
            method: self.method.unwrap_or_else(|| default_method.into()),
            headers: self.headers,
            body,
            mix: self.mix.unwrap_or_default(),
            json: self.json,
            quiet: self.quiet,
        })
    }
}

/// The options of a command line that is known to be right.
#[cfg(test)]
pub(crate) fn options(args: &[&str]) -> Options {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
    match parse(&args) {
        Ok(Command::Http(options)) => *options,
        other => panic!("{args:?}: {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://localhost/";

    fn refusal(args: &[&str]) -> String {
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        parse(&args).expect_err("should be refused")
    }

    #[test]
    fn the_defaults_are_those_of_the_help_text() {
        let options = options(&[URL]);
        assert_eq!((options.connections, options.threads, options.pipeline), (10, 1, 1));
        assert_eq!(
            (options.duration, options.requests),
            (Some(Duration::from_secs(4)), None)
        );
        assert_eq!(
            (options.timeout, options.warmup),
            (Duration::from_secs(10), Duration::ZERO)
        );
        assert_eq!(
            (options.method.as_str(), options.rate, options.keep_alive),
            ("GET", None, true)
        );
    }

    #[test]
    fn requests_replace_the_default_duration_but_not_a_given_one() {
        assert_eq!(options(&[URL, "-n", "5"]).duration, None);
        assert_eq!(options(&[URL, "-n5", "-d2"]).duration, Some(Duration::from_secs(2)));
    }

    #[test]
    fn durations_take_units() {
        for (text, millis) in [
            ("4", 4000),
            ("0.25", 250),
            ("4s", 4000),
            ("500ms", 500),
            ("2m", 120_000),
        ] {
            assert_eq!(
                options(&[URL, "-d", text]).duration,
                Some(Duration::from_millis(millis)),
                "{text}"
            );
        }
    }

    #[test]
    fn there_are_never_more_threads_than_connections() {
        assert_eq!(options(&[URL, "-c", "2", "--threads", "8"]).threads, 2);
    }

    #[test]
    fn path_replaces_the_path_of_the_url() {
        assert_eq!(options(&["unix:///x.sock", "--path", "a?b"]).url.path, "/a?b");
    }

    #[test]
    fn a_body_comes_from_a_file() {
        let file = std::env::temp_dir().join(format!("fairlead-load-body-{}", std::process::id()));
        std::fs::write(&file, b"from a file").expect("writable");
        let body = options(&[URL, "--body", &format!("@{}", file.display())]).body;
        std::fs::remove_file(&file).expect("still there");
        assert_eq!(body, b"from a file");
    }

    #[test]
    fn help_wins_over_everything_after_it() {
        assert!(matches!(parse(&["-h".into(), "--nonsense".into()]), Ok(Command::Help)));
    }

    #[test]
    fn wrong_usage_is_named() {
        let table: [(&[&str], &str); 20] = [
            (&[], "which URL"),
            (&[URL, URL], "one URL"),
            (&[URL, "-c", "0"], "--connections: 0"),
            (&[URL, "-c", "many"], "--connections: many"),
            (&[URL, "-c", "100001"], "more than 100000"),
            (&[URL, "-c"], "needs a value"),
            (&[URL, "-d", "0"], "--duration"),
            (&[URL, "-d", "-1"], "seconds"),
            (&[URL, "-d", "NaN"], "seconds"),
            (&[URL, "--rate", "0"], "--rate"),
            (&[URL, "--timeout", "0"], "--timeout"),
            (&[URL, "--pipeline", "2", "--no-keep-alive"], "keep-alive"),
            (&[URL, "-m", "GET /"], "method"),
            (&[URL, "-H", "no colon"], "colon"),
            (&[URL, "-H", "a: b\r\nc: d"], "line break"),
            (&[URL, "--body", "@/nowhere/at/all"], "/nowhere/at/all"),
            (&[URL, "--mix", "/nowhere/at/all"], "/nowhere/at/all"),
            (&[URL, "--turbo"], "unknown option --turbo"),
            (&[URL, "-x"], "unknown option -x"),
            (&[URL, "--size", "9"], "--size does not go with HTTP requests"),
        ];
        for (args, reason) in table {
            let refusal = refusal(args);
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
