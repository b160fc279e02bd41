//! The command line: its options, their help and their checks.

mod flags;
mod http;
mod mix;
mod real_time;
mod streams;
mod tls;
mod values;

pub(crate) use http::Options;
pub(crate) use mix::{names, Share};
pub(crate) use real_time::{Broadcast, Echo, RealTime, Task, Transport};
pub(crate) use streams::{Carried, Class};
pub(crate) use tls::{TlsOptions, Trust};

use crate::url::Url;
use flags::{explain, Flags};

/// A parsed command line.
#[derive(Debug)]
pub(crate) enum Command {
    /// The text of `--help`.
    Help(String),
    Http(Box<Options>),
    RealTime(Box<RealTime>),
}

/// The name by which the user has started the tool, for messages: `fairlead bench` passes its own.
pub(crate) fn command_name() -> &'static str {
    const BENCH: &str = "fairlead bench";
    match std::env::args_os().next() {
        Some(name) if name == BENCH => BENCH,
        _ => "fairlead-load",
    }
}

/// Reads the arguments that follow the name. The error is one line for the user.
pub(crate) fn parse(args: &[String]) -> Result<Command, String> {
    let flags = match Flags::read(args) {
        Ok(flags) => flags,
        Err(error) => return explain(&error).map(Command::Help),
    };
    let url = Url::parse(flags.url.as_deref().ok_or("which URL?")?)?;
    if url.websocket || flags.sse || flags.idle || flags.broadcast {
        return real_time::real_time(flags, url).map(|options| Command::RealTime(Box::new(options)));
    }
    http::http(flags, url).map(|options| Command::Http(Box::new(options)))
}

/// The options of a command line that is known to be valid.
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
    use std::time::Duration;

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
        assert!(matches!(
            parse(&["-h".into(), "--nonsense".into()]),
            Ok(Command::Help(_))
        ));
    }

    #[test]
    fn wrong_usage_is_named() {
        let table: [(&[&str], &str); 17] = [
            (&[], "which URL"),
            (&[URL, URL], "unexpected argument"),
            (&[URL, "-c", "0"], "--connections <N>': 0 is not in 1..=100000"),
            (&[URL, "-c", "100001"], "100001 is not in"),
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
            (&[URL, "-x"], "unexpected argument '-x'"),
            (&[URL, "--size", "9"], "--size does not go with HTTP requests"),
        ];
        for (args, reason) in table {
            let refusal = refusal(args);
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
