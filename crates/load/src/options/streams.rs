//! `--streams`: the number of concurrent streams of each connection.

use super::flags::Flags;
use super::values::{Item, Streams, MAX_CONNECTIONS};
use serde::Serialize;

const DEFAULT_CONNECTIONS: usize = 10;

/// Number of connections in this class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Class {
    pub(crate) connections: usize,
    /// Number of streams on each of them.
    pub(crate) streams: usize,
}

/// The number of connections, and the classes of HTTP/2 connections.
pub(super) fn classes(flags: &Flags) -> Result<(usize, Option<Vec<Class>>), String> {
    let connections = flags.connections.unwrap_or(DEFAULT_CONNECTIONS);
    if !flags.http2 {
        return match flags.streams {
            Some(_) => Err("--streams needs --http2".into()),
            None => Ok((connections, None)),
        };
    }
    let items = flags.streams.as_ref().map(|Streams(items)| items.as_slice());
    let classes: Vec<Class> = match items {
        None => vec![Class {
            connections,
            streams: 1,
        }],
        Some(
            &[Item {
                streams,
                connections: None,
            }],
        ) => vec![Class { connections, streams }],
        Some(_) if flags.connections.is_some() => {
            let why = "--streams with a list says how many connections there are: --connections does not go with it";
            return Err(why.into());
        }
        Some(items) => items.iter().copied().map(Class::from).collect(),
    };
    let connections = classes.iter().map(|class| class.connections).sum();
    if connections > MAX_CONNECTIONS {
        return Err(format!(
            "--streams: {connections} connections are more than {MAX_CONNECTIONS}"
        ));
    }
    Ok((connections, Some(classes)))
}

impl From<Item> for Class {
    fn from(item: Item) -> Class {
        Class {
            streams: item.streams,
            connections: item.connections.unwrap_or(1),
        }
    }
}

/// Class of an HTTP/2 connection, and the number of its streams. In HTTP/1.1 there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) class: usize,
    pub(crate) streams: usize,
}

impl Carried {
    /// Class and number of streams of the connection with this number, counted from 0.
    pub(super) fn of(classes: &[Class], connection: usize) -> Carried {
        let mut end = 0;
        for (class, each) in classes.iter().enumerate() {
            end += each.connections;
            if connection < end {
                let streams = each.streams;
                return Carried { class, streams };
            }
        }
        Carried::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{options, parse};
    use super::*;

    const URL: &str = "http://localhost/";

    fn class(streams: usize, connections: usize) -> Class {
        Class { connections, streams }
    }

    #[test]
    fn a_number_is_for_every_connection() {
        let one = options(&[URL, "--http2"]);
        assert_eq!((one.connections, one.http2), (10, Some(vec![class(1, 10)])));
        let many = options(&[URL, "--http2", "-c", "2", "--streams", "32"]);
        assert_eq!((many.connections, many.http2), (2, Some(vec![class(32, 2)])));
        assert_eq!(options(&[URL]).http2, None);
    }

    #[test]
    fn a_list_says_how_many_connections_there_are() {
        let options = options(&[URL, "--http2", "--streams", "100,1x10"]);
        assert_eq!(options.connections, 11);
        assert_eq!(options.http2, Some(vec![class(100, 1), class(1, 10)]));
        let streams: Vec<usize> = (0..11).map(|connection| options.carried(connection).streams).collect();
        assert_eq!(streams, [100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        assert_eq!((options.carried(0).class, options.carried(10).class), (0, 1));
    }

    #[test]
    fn wrong_usage_is_named() {
        let table: [(&[&str], &str); 10] = [
            (&["--streams", "2"], "--streams needs --http2"),
            (&["--http2", "--streams", "0"], "\"0\" is not"),
            (&["--http2", "--streams", "1,,2"], "\"\" is not a whole number"),
            (&["--http2", "--streams", "1x"], "\"\" is not a whole number"),
            (&["--http2", "--streams", "10001"], "from 1 to 10000"),
            (&["--http2", "--streams", "1x60000,2x60000"], "120000 connections"),
            (
                &["--http2", "--streams", "1x2", "-c", "2"],
                "--connections does not go with it",
            ),
            (&["--http2", "--pipeline", "2"], "cannot be used with '--pipeline <N>'"),
            (&["--http2", "--no-keep-alive"], "cannot be used with '--no-keep-alive'"),
            (&["--sse", "--publish", URL, "--http2"], "--http2 does not go with"),
        ];
        for (args, reason) in table {
            let args: Vec<String> = [&[URL], args].concat().iter().map(|arg| arg.to_string()).collect();
            let refusal = parse(&args).expect_err("should be refused");
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
