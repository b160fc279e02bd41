//! Connections to the server, and its responses.

use std::io::{Read, Write};
use std::net::TcpStream;

/// A connection to the server.
pub struct Client(pub TcpStream);

/// Status, type and body.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub kind: String,
    pub body: String,
}

impl Client {
    pub fn write(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).unwrap();
    }

    /// Reads everything until the server closes the connection.
    pub fn answer(&mut self) -> Answer {
        let mut text = String::new();
        self.0.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        assert_eq!(Some(body.len().to_string().as_str()), field("content-length"));
        assert_eq!(
            (Some("close"), Some("no-store")),
            (field("connection"), field("cache-control"))
        );
        Answer {
            status: head[9..12].parse().unwrap(),
            kind: field("content-type").unwrap().to_owned(),
            body: body.to_owned(),
        }
    }

    /// Waits until the server closes the connection or sends a byte. Returns true if it has closed.
    pub fn is_dropped(&mut self) -> bool {
        !matches!(self.0.read(&mut [0]), Ok(1..))
    }

    /// Returns true if nothing has arrived, not even end of file.
    pub fn is_silent(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let found = self.0.peek(&mut [0]).map_err(|error| error.kind());
        self.0.set_nonblocking(false).unwrap();
        found == Err(std::io::ErrorKind::WouldBlock)
    }
}

pub fn answer(status: u16, kind: &str, body: &str) -> Answer {
    let (kind, body) = (kind.to_owned(), body.to_owned());
    Answer { status, kind, body }
}
