//! The options of WebSockets and event streams.

use super::flags::Flags;
use super::tls::{tls, TlsOptions, TLS};
use super::values::{as_seconds, maybe_seconds, payload_type};
use crate::marker;
use crate::url::Url;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The validated command line of a run over WebSockets or event streams; `settings` in JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RealTime {
    #[serde(serialize_with = "text")]
    pub(crate) url: Url,
    #[serde(skip)]
    pub(crate) tls: Option<TlsOptions>,
    pub(crate) transport: Transport,
    #[serde(flatten)]
    pub(crate) task: Task,
    pub(crate) connections: usize,
    #[serde(skip)]
    pub(crate) headers: Vec<(String, String)>,
    /// The subprotocol to offer.
    pub(crate) protocol: Option<String>,
    pub(crate) deflate: bool,
    /// Text in the message that permits sending `hello`.
    #[serde(skip)]
    pub(crate) welcome: Option<String>,
    /// Sent after the handshake.
    #[serde(skip)]
    pub(crate) hello: Option<String>,
    /// Text in the message that makes a connection count as subscribed.
    #[serde(skip)]
    pub(crate) ready: Option<String>,
    #[serde(serialize_with = "as_seconds")]
    pub(crate) timeout: Duration,
    #[serde(skip)]
    pub(crate) json: bool,
    #[serde(skip)]
    pub(crate) quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Transport {
    #[serde(rename = "websocket")]
    WebSocket,
    #[serde(rename = "sse")]
    EventStream,
}

/// The purpose of the connections.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub(crate) enum Task {
    Echo(Echo),
    Broadcast(Broadcast),
    Idle {
        #[serde(serialize_with = "as_seconds")]
        duration: Duration,
    },
}

impl Task {
    fn publishes_securely(&self) -> bool {
        match self {
            Task::Broadcast(broadcast) => broadcast.publish.as_ref().is_some_and(|url| url.secure),
            Task::Echo(_) | Task::Idle { .. } => false,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Echo {
    pub(crate) size: usize,
    #[serde(rename = "type", serialize_with = "payload_type")]
    pub(crate) binary: bool,
    /// `None`: until all messages have been sent.
    #[serde(serialize_with = "maybe_seconds")]
    pub(crate) duration: Option<Duration>,
    pub(crate) requests: Option<u64>,
    #[serde(serialize_with = "as_seconds")]
    pub(crate) warmup: Duration,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Broadcast {
    pub(crate) size: usize,
    #[serde(rename = "type", serialize_with = "payload_type")]
    pub(crate) binary: bool,
    pub(crate) publishers: usize,
    /// In total.
    pub(crate) messages: u32,
    /// Messages per second in total; `None`: as fast as they can be sent.
    pub(crate) rate: Option<f64>,
    /// Text before and after each published message.
    #[serde(skip)]
    pub(crate) template: Option<(String, String)>,
    /// URL to which messages are posted; `None`: they go through WebSockets like the subscribers'.
    #[serde(serialize_with = "maybe_text")]
    pub(crate) publish: Option<Url>,
}

fn text<S: Serializer>(url: &Url, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&url.text)
}

fn maybe_text<S: Serializer>(url: &Option<Url>, serializer: S) -> Result<S::Ok, S::Error> {
    url.as_ref().map(|url| &url.text).serialize(serializer)
}

const COMMON: &str = "--connections --header --ready --timeout --json --quiet";
const WEBSOCKET: &str = "--deflate --protocol --welcome --hello";
const ECHO: &str = "--duration --requests --warmup --size --text --binary";
const BROADCAST: &str = "--broadcast --publishers --messages --size --rate --template --publish";
const IDLE: &str = "--idle --duration";
const DEFAULT_DURATION: Duration = Duration::from_secs(4);

pub(super) fn real_time(flags: Flags, url: Url) -> Result<RealTime, String> {
    let transport = match (url.websocket, flags.sse) {
        (true, false) => Transport::WebSocket,
        (false, true) => Transport::EventStream,
        (true, true) => return Err("--sse needs an http URL".into()),
        (false, false) => return Err("--broadcast and --idle need a ws URL, or --sse".into()),
    };
    let task = task(&flags, transport)?;
    Ok(RealTime {
        tls: tls(&flags, url.secure || task.publishes_securely())?,
        url,
        transport,
        task,
        connections: flags.connections.unwrap_or(10),
        headers: flags.headers,
        protocol: flags.protocol,
        deflate: flags.deflate,
        welcome: flags.welcome,
        hello: flags.hello,
        ready: flags.ready,
        timeout: flags.timeout,
        json: flags.json,
        quiet: flags.quiet,
    })
}

/// Determines the task, and refuses options that do not go with it.
fn task(flags: &Flags, transport: Transport) -> Result<Task, String> {
    let (of_transport, types) = match transport {
        Transport::WebSocket => (WEBSOCKET, "--text --binary"),
        Transport::EventStream => ("--sse", ""),
    };
    let allow = |lists: &[&str], kind| flags.allow(&[&[COMMON, of_transport, TLS], lists].concat(), kind);
    if flags.idle {
        allow(&[IDLE], "--idle")?;
        let duration = flags.duration.unwrap_or(DEFAULT_DURATION);
        return Ok(Task::Idle { duration });
    }
    if flags.broadcast || transport == Transport::EventStream {
        let broadcast = broadcast(flags, transport)?;
        allow(&[BROADCAST, types], "a broadcast")?;
        return Ok(Task::Broadcast(broadcast));
    }
    allow(&[ECHO], "echoes")?;
    Ok(Task::Echo(Echo {
        size: flags.size,
        binary: flags.binary,
        duration: flags.duration.or(flags.requests.is_none().then_some(DEFAULT_DURATION)),
        requests: flags.requests,
        warmup: flags.warmup,
    }))
}

fn broadcast(flags: &Flags, transport: Transport) -> Result<Broadcast, String> {
    let publish = flags.publish.as_deref().map(Url::parse).transpose()?;
    if publish.as_ref().is_some_and(|url| url.websocket) {
        return Err("--publish needs an http URL".into());
    }
    if publish.is_none() && transport == Transport::EventStream {
        return Err("--sse needs --publish URL, or --idle".into());
    }
    let (size, least) = (flags.size, marker::BYTES);
    if size < least {
        return Err(format!(
            "--size: {size} is less than the {least} bytes that mark a message"
        ));
    }
    let template = flags.template.as_deref().map(|text| {
        let (before, after) = text.split_once("%s").ok_or("--template: there is no %s in it")?;
        Ok::<_, String>((before.to_owned(), after.to_owned()))
    });
    Ok(Broadcast {
        size,
        binary: flags.binary,
        publishers: flags.publishers,
        messages: u32::try_from(flags.messages).unwrap_or(u32::MAX),
        rate: flags.rate,
        template: template.transpose()?,
        publish,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{parse, Command};
    use super::*;

    const WS: &str = "ws://localhost/chat";
    const EVENTS: &str = "http://localhost/events";
    const PUBLISH: &str = "http://localhost/publish";

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| arg.to_string()).collect()
    }

    fn real_time(args: &[&str]) -> RealTime {
        match parse(&strings(args)) {
            Ok(Command::RealTime(options)) => *options,
            other => panic!("{args:?}: {other:?}"),
        }
    }

    #[test]
    fn a_websocket_url_alone_asks_for_echoes() {
        let options = real_time(&[WS]);
        assert_eq!((options.transport, options.connections), (Transport::WebSocket, 10));
        match options.task {
            Task::Echo(echo) => {
                assert_eq!((echo.size, echo.binary, echo.requests), (64, false, None));
                assert_eq!(echo.duration, Some(Duration::from_secs(4)));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_event_stream_with_a_place_to_publish_is_a_broadcast() {
        let options = real_time(&[EVENTS, "--sse", "--publish", PUBLISH, "--template", "{\"m\":\"%s\"}"]);
        match options.task {
            Task::Broadcast(broadcast) => {
                assert_eq!((broadcast.publishers, broadcast.messages), (1, 200));
                assert_eq!(broadcast.template, Some(("{\"m\":\"".into(), "\"}".into())));
                assert_eq!(broadcast.publish.map(|url| url.path), Some("/publish".into()));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn wrong_usage_is_named() {
        let table: [(&[&str], &str); 13] = [
            (&[EVENTS, "--sse"], "--sse needs --publish URL"),
            (&[WS, "--sse"], "--sse needs an http URL"),
            (&[EVENTS, "--broadcast"], "need a ws URL"),
            (&[EVENTS, "--idle"], "need a ws URL"),
            (&[WS, "--pipeline", "2"], "--pipeline does not go with echoes"),
            (&[WS, "--messages", "2"], "--messages does not go with echoes"),
            (&[WS, "--idle", "--size", "9"], "--size does not go with --idle"),
            (
                &[WS, "--broadcast", "-d", "9"],
                "--duration does not go with a broadcast",
            ),
            (
                &[EVENTS, "--sse", "--publish", PUBLISH, "--hello", "x"],
                "--hello does not go",
            ),
            (&[EVENTS, "--sse", "--publish", WS], "--publish needs an http URL"),
            (&[WS, "--broadcast", "--size", "8"], "--size: 8 is less than"),
            (&[WS, "--broadcast", "--template", "x"], "there is no %s"),
            (&[WS, "--protocol", "a b"], "not a token"),
        ];
        for (args, reason) in table {
            let refusal = parse(&strings(args)).expect_err("should be refused");
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
