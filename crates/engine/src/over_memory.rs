//! Requests and responses over a transport in memory that carries one byte at a time, and fails on demand. Shows that
//! everything above the transport works with any transport. The cases also run over real sockets (`tests/requests`).

use crate::support::{config, eventually, path, reply, Client, Server, PATIENCE};
use crate::transport::memory::{pair, Manners, Peer};
use crate::Body;
use std::io::Read as _;
use std::sync::Arc;

#[path = "../tests/requests/cases.rs"]
mod cases;
#[path = "../tests/requests/http1.rs"]
mod http1;

const A_BYTE_AT_A_TIME: Manners = Manners {
    receives: 1,
    sends: 1,
    receives_in_all: usize::MAX,
    sends_in_all: usize::MAX,
};

fn connect(server: &Server) -> Client<Peer> {
    connect_with(server, A_BYTE_AT_A_TIME)
}

/// Ends the client's output.
fn half_close(client: &mut Client<Peer>) {
    client.stream.shut_down();
}

fn connect_with(server: &Server, manners: Manners) -> Client<Peer> {
    let (transport, peer) = pair(manners, PATIENCE);
    server.engine.attach(Arc::new(transport));
    Client::over(peer)
}

/// Starts an app that responds with the request.
fn echo() -> Server {
    Server::start(config(), |exchange| {
        let body = match exchange.take_body() {
            Body::Empty => Vec::new(),
            Body::Memory(bytes) => bytes,
            Body::File(mut file, _) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).expect("a readable file");
                bytes
            }
        };
        let text = format!("{} {}", path(exchange), String::from_utf8_lossy(&body));
        reply(exchange, &text);
    })
}

/// Pipelined requests with all kinds of framing, and the responses to them.
const REQUESTS: &str = "GET /a HTTP/1.1\r\nHost: test\r\n\r\n\
    POST /b HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello\
    POST /c HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3;x=\"y\"\r\nabc\r\n2\r\nde\r\n0\r\nT: 1\r\n\r\n\
    \r\nGET http://test/d?e HTTP/1.1\r\nHost: test\r\n\r\n";
const ANSWERS: [&str; 4] = ["/a ", "/b hello", "/c abcde", "http://test/d?e "];

#[test]
fn requests_may_be_split_at_any_byte() {
    let server = echo();
    for split in 0..=REQUESTS.len() {
        for manners in [Manners::default(), A_BYTE_AT_A_TIME] {
            let mut client = connect_with(&server, manners);
            client.send(&REQUESTS[..split]);
            client.send(&REQUESTS[split..]);
            for answer in ANSWERS {
                assert_eq!(client.response().text(), answer, "split at {split}");
            }
        }
    }
    eventually("no connection is left", || server.engine.stats().connections == 0);
}

#[test]
fn responses_are_complete_however_little_the_client_takes_at_a_time() {
    let server = Server::start(config(), |exchange| {
        exchange.start(200);
        exchange.end_head(None);
        for piece in [&b"one "[..], b"two ", &[b'3'; 300]] {
            // It takes nothing while the body sender is in the middle of a slice.
            while exchange.write(piece).expect("the client is there") == 0 {
                exchange.wait_for_client().expect("the client is there");
            }
            exchange.flush();
        }
    });
    let mut whole = Vec::new();
    for sends in [usize::MAX, 1, 2, 3, 5, 7, 64] {
        let manners = Manners {
            sends,
            ..Manners::default()
        };
        let mut client = connect_with(&server, manners);
        client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        let text = String::from_utf8(client.rest()).expect("text");
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        whole.push(body.to_string());
    }
    assert!(whole[0].starts_with("4\r\none \r\n4\r\ntwo \r\n12c\r\n333") && whole[0].ends_with("3\r\n0\r\n\r\n"));
    assert!(whole.iter().all(|body| *body == whole[0]), "{whole:?}");
}

#[test]
fn an_error_at_any_byte_ends_only_its_connection() {
    let server = echo();
    let mut other = connect_with(&server, Manners::default());
    for at in 0..REQUESTS.len() {
        let manners = Manners {
            receives_in_all: at,
            ..A_BYTE_AT_A_TIME
        };
        let mut client = connect_with(&server, manners);
        client.send(REQUESTS);
        client.rest();
    }
    assert_eq!(other.get("/still-here").text(), "/still-here ");
    let mut client = connect_with(&server, Manners::default());
    client.send("GET /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let length = client.rest().len();
    for at in 0..length {
        let manners = Manners {
            sends_in_all: at,
            ..A_BYTE_AT_A_TIME
        };
        let mut client = connect_with(&server, manners);
        client.send("GET /a HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        assert_eq!(client.rest().len(), at);
    }
    assert_eq!(other.get("/still-here").text(), "/still-here ");
    drop((client, other));
    eventually("no connection is left", || server.engine.stats().connections == 0);
}

#[test]
fn a_transport_that_is_no_socket_is_hijacked_through_a_relay() {
    let server = Server::start(config(), |exchange| {
        let mut socket = std::os::unix::net::UnixStream::from(exchange.hijack().expect("a relay"));
        std::thread::spawn(move || {
            socket.set_nonblocking(false).expect("a socket");
            let mut space = [0; 5];
            socket.read_exact(&mut space).expect("the bytes after the request");
            std::io::Write::write_all(&mut socket, &space).expect("an open relay");
        });
    });
    let mut client = connect(&server);
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\nhello");
    assert_eq!(client.rest(), b"hello");
}
