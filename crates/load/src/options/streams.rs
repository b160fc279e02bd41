//! `--streams`: how many streams are open at the same time on which connections.

use super::values::count;
use super::{Draft, Options, MAX_CONNECTIONS};

const NAME: &str = "--streams";
const MAX_STREAMS: usize = 10_000;
const DEFAULT_CONNECTIONS: usize = 10;

/// Connections that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) connections: usize,
    /// On each of them.
    pub(crate) streams: usize,
}

/// One item of the list: `STREAMS`, or `STREAMSxCONNECTIONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Item {
    streams: usize,
    connections: Option<usize>,
}

/// Reads `8`, `100,1x10` and the like.
pub(super) fn items(text: &str) -> Result<Vec<Item>, String> {
    let item = |item: &str| {
        let (streams, connections) = match item.split_once('x') {
            Some((streams, connections)) => (streams, Some(count(NAME, connections, MAX_CONNECTIONS)?)),
            None => (item, None),
        };
        let streams = count(NAME, streams, MAX_STREAMS)?;
        Ok(Item { streams, connections })
    };
    text.split(',').map(item).collect()
}

impl Draft {
    /// The number of connections, and what they carry of HTTP/2, if that is spoken.
    pub(super) fn streams(&self) -> Result<(usize, Option<Vec<Class>>), String> {
        let connections = self.connections.unwrap_or(DEFAULT_CONNECTIONS);
        if !self.http2 {
            return match self.streams {
                Some(_) => Err("--streams needs --http2".into()),
                None => Ok((connections, None)),
            };
        }
        if let Some(name) = self
            .given
            .iter()
            .find(|name| *name == "--pipeline" || *name == "--no-keep-alive")
        {
            return Err(format!("{name} does not go with --http2"));
        }
        let one = [Item {
            streams: 1,
            connections: None,
        }];
        let classes: Vec<Class> = match self.streams.as_deref().unwrap_or(&one) {
            &[Item {
                streams,
                connections: None,
            }] => vec![Class { connections, streams }],
            _ if self.connections.is_some() => {
                return Err(
                    "--streams with a list says how many connections there are: --connections does not go with it"
                        .into(),
                )
            }
            items => items.iter().copied().map(Class::from).collect(),
        };
        let connections = classes.iter().map(|class| class.connections).sum();
        if connections > MAX_CONNECTIONS {
            return Err(format!(
                "{NAME}: {connections} connections are more than {MAX_CONNECTIONS}"
            ));
        }
        Ok((connections, Some(classes)))
    }
}

impl From<Item> for Class {
    fn from(item: Item) -> Class {
        Class {
            streams: item.streams,
            connections: item.connections.unwrap_or(1),
        }
    }
}

/// What a connection carries of HTTP/2: which of the classes it belongs to, and its streams. In HTTP/1.1 there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) class: usize,
    pub(crate) streams: usize,
}

impl Options {
    /// What the connection of a number carries; the first one is number 0.
    pub(crate) fn carried(&self, connection: usize) -> Carried {
        let mut end = 0;
        for (class, each) in self.http2.iter().flatten().enumerate() {
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
            (&["--http2", "--streams", "0"], "--streams: 0"),
            (&["--http2", "--streams", "1,,2"], "--streams:  is not a whole number"),
            (&["--http2", "--streams", "1x"], "--streams:  is not a whole number"),
            (&["--http2", "--streams", "10001"], "more than 10000"),
            (&["--http2", "--streams", "1x60000,2x60000"], "120000 connections"),
            (
                &["--http2", "--streams", "1x2", "-c", "2"],
                "--connections does not go with it",
            ),
            (&["--http2", "--pipeline", "2"], "--pipeline does not go with --http2"),
            (
                &["--http2", "--no-keep-alive"],
                "--no-keep-alive does not go with --http2",
            ),
            (&["--sse", "--publish", URL, "--http2"], "--http2 does not go with"),
        ];
        for (args, reason) in table {
            let args: Vec<String> = [&[URL], args].concat().iter().map(|arg| arg.to_string()).collect();
            let refusal = parse(&args).expect_err("should be refused");
            assert!(refusal.contains(reason), "{args:?}: {refusal}");
        }
    }
}
