//! A WebSocket client for a test's engine.

use super::PATIENCE;
use fairlead_engine::Exchange;
use fairlead_wire::websocket::{masked_frame, Decoder, Deflate, Deflater, Incoming, Limits, Opcode, Role};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Text(String),
    Binary(Vec<u8>),
    Ping,
    Pong(Vec<u8>),
    Close(Option<u16>),
    End,
}

pub struct WebSocket {
    pub stream: TcpStream,
    decoder: Decoder,
    received: Vec<Received>,
}

const HANDSHAKE: &str = "GET /ws HTTP/1.1\r\nHost: test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/// Accepts an offered upgrade with the protocol `chat`, and responds to all other requests.
pub fn accept(exchange: &mut Exchange<'_>) {
    if exchange.start_upgrade() {
        let _ = exchange.field(b"sec-websocket-protocol", b"chat");
        exchange.end_upgrade();
    } else {
        exchange.respond_plainly(200);
    }
}

impl WebSocket {
    pub fn connect(address: SocketAddr) -> WebSocket {
        WebSocket::connect_with(address, &[])
    }

    /// Sends `ahead` together with the handshake.
    pub fn connect_with(address: SocketAddr, ahead: &[u8]) -> WebSocket {
        WebSocket::open(address, HANDSHAKE, ahead)
    }

    /// A client with this line among the fields of its handshake.
    pub fn connect_with_field(address: SocketAddr, line: &str) -> WebSocket {
        let handshake = HANDSHAKE.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"));
        WebSocket::open(address, &handshake, &[])
    }

    /// A client that may compress its messages. Short responses are not compressed.
    pub fn connect_deflating(address: SocketAddr) -> WebSocket {
        let extension = "Sec-WebSocket-Extensions: permessage-deflate; client_no_context_takeover\r\n\r\n";
        let handshake = HANDSHAKE.replace("\r\n\r\n", &format!("\r\n{extension}"));
        WebSocket::open(address, &handshake, &[])
    }

    /// A client that accepts compressed messages, with a window of `2^bits` bytes.
    pub fn connect_with_window(address: SocketAddr, bits: Option<u8>) -> WebSocket {
        let window = bits.map_or(String::new(), |bits| format!("; server_max_window_bits={bits}"));
        let extension = format!("Sec-WebSocket-Extensions: permessage-deflate{window}\r\n\r\n");
        let handshake = HANDSHAKE.replace("\r\n\r\n", &format!("\r\n{extension}"));
        WebSocket::open(address, &handshake, &[])
    }

    /// A client that inflates its messages, with the context of earlier ones.
    pub fn connect_inflating(address: SocketAddr) -> WebSocket {
        let mut client = WebSocket::connect_with_window(address, None);
        let deflate = Deflate {
            server_no_context: false,
            client_no_context: false,
            server_bits: 15,
            client_bits: 15,
        };
        client.decoder = Decoder::new(Role::Client, Some(deflate));
        client
    }

    fn open(address: SocketAddr, handshake: &str, ahead: &[u8]) -> WebSocket {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        stream
            .write_all(&[handshake.as_bytes(), ahead].concat())
            .expect("the server reads");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a response");
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).expect("text");
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(
            head.contains("\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
            "{head}"
        );
        assert!(head.contains("\r\nsec-websocket-protocol: chat\r\n"), "{head}");
        WebSocket {
            stream,
            decoder: Decoder::new(Role::Client, None),
            received: Vec::new(),
        }
    }

    pub fn send(&mut self, opcode: Opcode, data: &[u8]) {
        self.stream.write_all(&frame(opcode, data)).expect("the server reads");
    }

    pub fn receive(&mut self) -> Received {
        let limits = Limits {
            message_bytes: 1 << 24,
            fragments: 1000,
        };
        let mut bytes = vec![0; 1 << 16];
        while self.received.is_empty() {
            let count = self.stream.read(&mut bytes).unwrap_or(0);
            if count == 0 {
                return Received::End;
            }
            let received = &mut self.received;
            let fed = self.decoder.feed(&mut bytes[..count], &limits, &mut |incoming| {
                received.push(match incoming {
                    Incoming::Text(data) => Received::Text(String::from_utf8(data.into_owned()).expect("checked")),
                    Incoming::Binary(data) => Received::Binary(data.into_owned()),
                    Incoming::Ping(_) => Received::Ping,
                    Incoming::Pong(data) => Received::Pong(data.to_vec()),
                    Incoming::Close(code, _) => Received::Close(code),
                });
            });
            fed.expect("the server keeps to the protocol");
        }
        self.received.remove(0)
    }
}

pub fn frame(opcode: Opcode, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    masked_frame(&mut bytes, opcode, false, [1, 2, 3, 4], data);
    bytes
}

/// A message of zeros, which compresses to a thousandth.
pub fn bomb(length: usize) -> Vec<u8> {
    let (mut compressed, mut bytes) = (Vec::new(), Vec::new());
    Deflater::new(15).message(&vec![0; length], false, &mut compressed);
    masked_frame(&mut bytes, Opcode::Binary, true, [1, 2, 3, 4], &compressed);
    bytes
}

pub fn text(data: &str) -> Received {
    Received::Text(data.into())
}
