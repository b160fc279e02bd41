//! The command line as clap reads it: each option with its help and the check of its value.

use super::values::{count, header, method, rate, seconds, some_seconds, token, Streams, Version, MAX_CONNECTIONS};
use crate::url::request_path;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use std::net::Ipv4Addr;
use std::time::Duration;

const MAX_PIPELINE: usize = 1_000;
const MAX_THREADS: usize = 256;
const MAX_MESSAGES: usize = 100_000_000;
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

const HOW_MUCH: &str = "How much";
const HTTP2: &str = "HTTP/2";
const REQUESTS: &str = "Requests";
const TLS: &str = "TLS (https, wss)";
const REAL_TIME: &str = "WebSockets and event streams";
const OUTPUT: &str = "Output";

const KINDS: &str = "\
http://host[:port][/path], unix:///path/to.sock   requests over several connections; shows each of them
ws://host[:port][/path]                           WebSockets: echoes, one at a time on each connection
ws://… --broadcast                                publishers send, all receive: deliveries, losses, order
http://… --sse --publish http://…/publish         the same with server-sent events; publishes by POST
ws://… --idle, http://… --sse --idle              opens connections and holds them
https://…, wss://…                                the same over TLS; also counts and times handshakes
http://… --http2, https://… --http2               requests over HTTP/2, several streams at a time on each connection";

const STATUSES: &str = "\
Exit status: 0 every response was 2xx or 3xx, every message arrived once and in order, no connection was lost;
1 wrong usage or unreachable; 2 anything else.";

#[derive(Debug, Parser)]
#[command(
    help_template = "{usage-heading} {usage}\n\n{about}\n\n{all-args}\n\n{after-help}",
    about = KINDS,
    after_help = STATUSES,
    args_override_self = true
)]
pub(super) struct Flags {
    #[arg(value_name = "URL", hide = true)]
    pub(super) url: Option<String>,

    /// Connections: clients, sockets or subscribers (10)
    #[arg(short, long, value_name = "N", value_parser = count(MAX_CONNECTIONS), help_heading = HOW_MUCH)]
    pub(super) connections: Option<usize>,
    /// Time to measure, or to hold connections (4)
    #[arg(short, long, value_name = "SEC", value_parser = some_seconds, help_heading = HOW_MUCH)]
    pub(super) duration: Option<Duration>,
    /// Stop after N requests or echoes in total, shared by all connections
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = HOW_MUCH)]
    pub(super) requests: Option<u64>,
    /// Run this long before measuring
    #[arg(long, value_name = "SEC", value_parser = seconds, default_value = "0", help_heading = HOW_MUCH)]
    pub(super) warmup: Duration,
    /// Send R requests or publish R messages per second in total, even if responses are late (open
    /// loop); without it, each follows when the previous one is done
    #[arg(verbatim_doc_comment, long, value_name = "R", value_parser = rate, help_heading = HOW_MUCH)]
    pub(super) rate: Option<f64>,
    /// Give up on a request, a handshake or an echo, or when no message is delivered, after this time
    #[arg(long, value_name = "SEC", value_parser = some_seconds, default_value = "10", help_heading = HOW_MUCH)]
    pub(super) timeout: Duration,

    /// Also count the good responses (2xx, 3xx) that come within this time from when they were due, and
    /// show good responses and refusals separately
    #[arg(verbatim_doc_comment, long, value_name = "SEC", value_parser = some_seconds, help_heading = HOW_MUCH)]
    pub(super) within: Option<Duration>,

    /// h2 over TLS, which the server must agree to (ALPN); over http and unix with prior knowledge (h2c)
    #[arg(long, conflicts_with_all = ["pipeline", "no_keep_alive"], help_heading = HTTP2)]
    pub(super) http2: bool,
    /// N: streams open at the same time on each connection (1), limited by the server.
    /// LIST: different connections, instead of --connections: STREAMS or STREAMSxCONNECTIONS, with
    /// commas. 100,1x10 is one connection with 100 streams and ten with one
    #[arg(verbatim_doc_comment, long, value_name = "N|LIST", help_heading = HTTP2)]
    pub(super) streams: Option<Streams>,

    /// Requests in progress on one connection at a time; HTTP/1.1 only
    #[arg(long, value_name = "N", value_parser = count(MAX_PIPELINE), default_value = "1", help_heading = REQUESTS)]
    pub(super) pipeline: usize,
    /// A new connection for every request; HTTP/1.1 only
    #[arg(long, help_heading = REQUESTS)]
    pub(super) no_keep_alive: bool,
    /// Local IPv4 address to connect from, such as 127.0.0.2: another client for a server on this machine
    #[arg(long, value_name = "ADDRESS", help_heading = REQUESTS)]
    pub(super) source: Option<Ipv4Addr>,
    /// Number of sending threads
    #[arg(long, value_name = "N", value_parser = count(MAX_THREADS), default_value = "1", help_heading = REQUESTS)]
    pub(super) threads: usize,
    /// GET by default, or POST with a body
    #[arg(short, long, value_name = "METHOD", value_parser = method, help_heading = REQUESTS)]
    pub(super) method: Option<String>,
    /// @FILE sends the file, @- standard input
    #[arg(long, value_name = "TEXT", help_heading = REQUESTS)]
    pub(super) body: Option<String>,
    /// Request target, for unix URLs (/)
    #[arg(long, value_name = "PATH", value_parser = request_path, help_heading = REQUESTS)]
    pub(super) path: Option<String>,
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["pipeline", "method", "body", "path"],
        help_heading = REQUESTS,
        help = "Each request is one of the lines of FILE, drawn at random by weight: WEIGHT NAME METHOD TARGET\n\
                [BODY]; requests with the same name are reported together"
    )]
    pub(super) mix: Option<String>,
    /// Repeatable; replaces a default field of the same name; also for handshakes
    #[arg(short = 'H', long = "header", value_name = "N: v", value_parser = header, help_heading = REQUESTS)]
    pub(super) headers: Vec<(String, String)>,

    /// Trust the certificate authorities in FILE (PEM) instead of the system's
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub(super) cacert: Option<String>,
    /// Check neither the certificate nor its signature
    #[arg(short = 'k', long, conflicts_with = "cacert", help_heading = TLS)]
    pub(super) insecure: bool,
    /// The client's certificate (PEM), and its key unless --key names another file
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub(super) cert: Option<String>,
    /// The key of --cert
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    pub(super) key: Option<String>,
    /// Use only this version
    #[arg(long, value_name = "V", help_heading = TLS)]
    pub(super) tls_version: Option<Version>,
    /// A connection that replaces another one resumes its session; without it each handshake is a
    /// full one. With --no-keep-alive this measures handshakes
    #[arg(verbatim_doc_comment, long, overrides_with = "no_resume", help_heading = TLS)]
    pub(super) resume: bool,
    /// The opposite of --resume
    #[arg(long, help_heading = TLS)]
    pub(super) no_resume: bool,

    /// Size of a message
    #[arg(long, value_name = "BYTES", value_parser = count(MAX_MESSAGE_BYTES), default_value = "64", help_heading = REAL_TIME)]
    pub(super) size: usize,
    /// Text messages (the default)
    #[arg(long, overrides_with = "binary", help_heading = REAL_TIME)]
    pub(super) text: bool,
    /// Binary messages
    #[arg(long, help_heading = REAL_TIME)]
    pub(super) binary: bool,
    /// Offer permessage-deflate, and use it if the server accepts it
    #[arg(long, help_heading = REAL_TIME)]
    pub(super) deflate: bool,
    /// Offer a subprotocol
    #[arg(long, value_name = "NAME", value_parser = token, help_heading = REAL_TIME)]
    pub(super) protocol: Option<String>,
    /// Message to send after the handshake, for example to subscribe
    #[arg(long, value_name = "TEXT", help_heading = REAL_TIME)]
    pub(super) hello: Option<String>,
    /// Send --hello only after a message that contains TEXT
    #[arg(long, value_name = "TEXT", help_heading = REAL_TIME)]
    pub(super) welcome: Option<String>,
    /// A connection counts as subscribed after a message that contains TEXT
    #[arg(long, value_name = "TEXT", help_heading = REAL_TIME)]
    pub(super) ready: Option<String>,
    /// Broadcast: publishers send, all connections receive
    #[arg(long, help_heading = REAL_TIME)]
    pub(super) broadcast: bool,
    /// Messages to broadcast
    #[arg(long, value_name = "N", value_parser = count(MAX_MESSAGES), default_value = "200", help_heading = REAL_TIME)]
    pub(super) messages: usize,
    /// Number of connections that publish the messages
    #[arg(long, value_name = "N", value_parser = count(MAX_CONNECTIONS), default_value = "1", help_heading = REAL_TIME)]
    pub(super) publishers: usize,
    /// Text that publishers send; %s stands for the message
    #[arg(long, value_name = "TEXT", help_heading = REAL_TIME)]
    pub(super) template: Option<String>,
    /// Server-sent events instead of WebSockets
    #[arg(long, help_heading = REAL_TIME)]
    pub(super) sse: bool,
    /// Publish by POST to this URL, the message as its body
    #[arg(long, value_name = "URL", help_heading = REAL_TIME)]
    pub(super) publish: Option<String>,
    /// Open connections and hold them
    #[arg(long, help_heading = REAL_TIME)]
    pub(super) idle: bool,

    /// One JSON document instead of text
    #[arg(long, help_heading = OUTPUT)]
    pub(super) json: bool,
    /// Print neither progress nor the list of connections
    #[arg(short, long, help_heading = OUTPUT)]
    pub(super) quiet: bool,

    /// Options on the command line, as `--name`, in the order above.
    #[arg(skip)]
    given: Vec<String>,
}

impl Flags {
    /// Reads the arguments that follow the name. The text of `--help` is an error, as in clap.
    pub(super) fn read(args: &[String]) -> Result<Flags, clap::Error> {
        // A value may begin with a hyphen: a negative number gets its option's error message, a body is taken
        // literally.
        let takes_value = |arg: &clap::Arg| matches!(arg.get_action(), ArgAction::Set | ArgAction::Append);
        let name = super::command_name();
        let named = Flags::command()
            .name(name)
            .override_usage(format!("{name} URL [options]"));
        let mut command = named.mut_args(|arg| {
            let is_value = takes_value(&arg) && !arg.is_positional();
            arg.allow_hyphen_values(is_value)
        });
        let words = std::iter::once(name).chain(args.iter().map(String::as_str));
        let matches = command.try_get_matches_from_mut(words)?;
        let mut flags = Flags::from_arg_matches(&matches)?;
        let is_given = |arg: &&clap::Arg| matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
        let names = command.get_arguments().filter(is_given).filter_map(clap::Arg::get_long);
        flags.given = names.map(|name| format!("--{name}")).collect();
        Ok(flags)
    }

    /// Refuses options that do not go with this kind of run. `lists` has the names of the allowed options, separated by
    /// spaces.
    pub(super) fn allow(&self, lists: &[&str], kind: &str) -> Result<(), String> {
        let is_allowed = |name: &str| lists.iter().any(|list| list.split(' ').any(|allowed| allowed == name));
        match self.given.iter().find(|name| !is_allowed(name)) {
            Some(name) => Err(format!("{name} does not go with {kind}")),
            None => Ok(()),
        }
    }

    /// The first given option of a list.
    pub(super) fn first_of(&self, list: &str) -> Option<&str> {
        let mut given = self.given.iter().map(String::as_str);
        given.find(|name| list.split(' ').any(|listed| listed == *name))
    }
}

/// The text of `--help`, or one line that says what is wrong.
pub(super) fn explain(error: &clap::Error) -> Result<String, String> {
    let text = error.to_string();
    if error.kind() == ErrorKind::DisplayHelp {
        return Ok(text);
    }
    let lines = text.trim_start_matches("error: ").lines();
    // A given value may itself have lines, even empty ones.
    let before_usage =
        lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    let lines: Vec<&str> = before_usage.map(str::trim).filter(|line| !line.is_empty()).collect();
    Err(lines.join(" "))
}
