//! What the user asked for: the command line, its help, its checks.

use crate::url::{request_path, Url};
use lexopt::prelude::{Long, Short, Value};
use std::io::Read;
use std::time::Duration;

pub(crate) const HELP: &str = "\
Usage: fairlead bench URL [options]

Sends requests to URL over several connections and shows what each connection got.
URL is http://host[:port][/path] or unix:///path/to.sock

How much:
  -c, --connections N     connections kept busy at the same time (10)
  -d, --duration SEC      how long to measure (4)
  -n, --requests N        stop after N requests in total, shared by all connections
      --warmup SEC        run this long before measuring (0)
      --rate R            send R requests per second in total, whether answers come or not (open loop);
                          without it every connection sends its next request when it has its answer
      --pipeline N        requests under way on one connection at a time (1)
      --no-keep-alive     a new connection for every request
      --threads N         threads that send (1)
      --timeout SEC       give up on a request after this long (10)

What to send:
  -m, --method METHOD     (GET, or POST with a body)
  -H, --header 'N: v'     repeatable; replaces a field of the same name that would be sent otherwise
      --body TEXT         @FILE sends the file, @- standard input
      --path PATH         request target, for unix URLs (/)

What to print:
      --json              one JSON document instead of text
  -q, --quiet             neither progress nor the list of connections
  -h, --help

Exit status: 0 every answer was 2xx or 3xx; 1 wrong usage or unreachable; 2 other answers, errors or no answer.
";

/// The validated command line.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) url: Url,
    pub(crate) connections: usize,
    pub(crate) threads: usize,
    pub(crate) pipeline: usize,
    pub(crate) keep_alive: bool,
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
    pub(crate) json: bool,
    pub(crate) quiet: bool,
}

/// What a command line asks for.
#[derive(Debug)]
pub(crate) enum Command {
    Help,
    Run(Box<Options>),
}

const MAX_CONNECTIONS: usize = 100_000;
const MAX_PIPELINE: usize = 1_000;
const MAX_THREADS: usize = 256;
/// Longest duration accepted: beyond a year it is a slip of the keyboard.
const MAX_SECONDS: f64 = 366.0 * 86_400.0;

/// Reads the arguments that follow `fairlead bench`.
pub(crate) fn parse(args: &[String]) -> Result<Command, String> {
    let mut draft = Draft::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next().map_err(|error| error.to_string())? {
        let name = match arg {
            Short(letter) => format!("-{letter}"),
            Long(name) => format!("--{name}"),
            Value(url) => {
                draft.url(url.to_string_lossy().into_owned())?;
                continue;
            }
        };
        if matches!(name.as_str(), "-h" | "--help") {
            return Ok(Command::Help);
        }
        draft.option(&name, &mut parser)?;
    }
    draft.finish().map(|options| Command::Run(Box::new(options)))
}

/// What has been read of the command line so far.
#[derive(Default)]
struct Draft {
    url: Option<String>,
    path: Option<String>,
    connections: Option<usize>,
    threads: Option<usize>,
    pipeline: Option<usize>,
    close: bool,
    duration: Option<Duration>,
    requests: Option<u64>,
    warmup: Option<Duration>,
    rate: Option<f64>,
    timeout: Option<Duration>,
    method: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    json: bool,
    quiet: bool,
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
            "-c" | "--connections" => self.connections = Some(count(name, &value()?, MAX_CONNECTIONS)?),
            "-d" | "--duration" => self.duration = Some(seconds(name, &value()?)?),
            "-n" | "--requests" => self.requests = Some(count(name, &value()?, usize::MAX)? as u64),
            "--warmup" => self.warmup = Some(seconds(name, &value()?)?),
            "--rate" => self.rate = Some(rate(&value()?)?),
            "--pipeline" => self.pipeline = Some(count(name, &value()?, MAX_PIPELINE)?),
            "--no-keep-alive" => self.close = true,
            "--threads" => self.threads = Some(count(name, &value()?, MAX_THREADS)?),
            "--timeout" => self.timeout = Some(seconds(name, &value()?)?),
            "-m" | "--method" => self.method = Some(method(&value()?)?),
            "-H" | "--header" => self.headers.push(header(&value()?)?),
            "--body" => self.body = Some(body(&value()?)?),
            "--path" => self.path = Some(request_path(&value()?)?),
            "--json" => self.json = true,
            "-q" | "--quiet" => self.quiet = true,
            _ => return Err(format!("unknown option {name}")),
        }
        Ok(())
    }

    fn finish(self) -> Result<Options, String> {
        let mut url = Url::parse(&self.url.ok_or("which URL?")?)?;
        if let Some(path) = self.path {
            url.path = path;
        }
        let pipeline = self.pipeline.unwrap_or(1);
        if self.close && pipeline > 1 {
            return Err("--pipeline needs keep-alive".into());
        }
        let connections = self.connections.unwrap_or(10);
        let body = self.body.unwrap_or_default();
        let default_method = if body.is_empty() { "GET" } else { "POST" };
        let default_duration = self.requests.is_none().then_some(Duration::from_secs(4));
        let options = Options {
            url,
            connections,
            threads: self.threads.unwrap_or(1).min(connections),
            pipeline,
            keep_alive: !self.close,
            duration: self.duration.or(default_duration),
            requests: self.requests,
            warmup: self.warmup.unwrap_or_default(),
            rate: self.rate,
            timeout: self.timeout.unwrap_or(Duration::from_secs(10)),
            method: self.method.unwrap_or_else(|| default_method.into()),
            headers: self.headers,
            body,
            json: self.json,
            quiet: self.quiet,
        };
        if options.duration.is_some_and(|duration| duration.is_zero()) {
            return Err("--duration must be more than 0".into());
        }
        if options.timeout.is_zero() {
            return Err("--timeout must be more than 0".into());
        }
        Ok(options)
    }
}

fn count(name: &str, text: &str, most: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        Ok(0) | Err(_) => Err(format!("{name}: {text} is not a whole number above 0")),
        Ok(_) => Err(format!("{name}: {text} is more than {most}")),
    }
}

/// Seconds, with an optional unit: `4`, `0.5`, `4s`, `500ms`, `2m`.
fn seconds(name: &str, text: &str) -> Result<Duration, String> {
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

fn rate(text: &str) -> Result<f64, String> {
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

fn method(text: &str) -> Result<String, String> {
    match text {
        "CONNECT" => Err("--method: CONNECT opens a tunnel, there is nothing to measure in it".into()),
        _ if is_token(text) => Ok(text.into()),
        _ => Err(format!("--method: {text} is not a method")),
    }
}

fn header(text: &str) -> Result<(String, String), String> {
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

fn body(text: &str) -> Result<Vec<u8>, String> {
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

/// The options of a command line that is known to be right.
#[cfg(test)]
pub(crate) fn options(args: &[&str]) -> Options {
    let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
    match parse(&args) {
        Ok(Command::Run(options)) => *options,
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
        let table: [(&[&str], &str); 17] = [
            (&[], "which URL"),
            (&[URL, URL], "one URL"),
            (&[URL, "-c", "0"], "-c: 0"),
            (&[URL, "-c", "many"], "-c: many"),
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
            (&[URL, "--turbo"], "unknown option --turbo"),
        ];
        for (args, reason) in table {
            let refusal = refusal(args);
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
