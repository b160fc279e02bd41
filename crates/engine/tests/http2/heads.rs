//! Heads that HTTP/2 allows or forbids and HTTP/1 does not have (RFC 9113 §8.3, RFC 8441 §4): the app gets each of them
//! exactly as its client has sent it, or not at all.

use crate::support::frames::*;
use crate::support::http2::{request, Http2Client};
use crate::support::*;
use fairlead_engine::Exchange;
use http::Request;

/// Responds with the request: its method, its target, and all its fields.
fn describe(exchange: &mut Exchange<'_>) {
    let request = exchange.request();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut lines = vec![format!("{} {}", text(request.method()), text(request.target()))];
    lines.extend(
        request
            .fields()
            .map(|(name, value)| format!("{}: {}", text(name), text(value))),
    );
    reply(exchange, &lines.join("\n"));
}

/// An extended CONNECT.
fn connect(protocol: &str) -> Request<()> {
    let mut connect = request("CONNECT", "/tunnel");
    connect.extensions_mut().insert(h2::ext::Protocol::from(protocol));
    connect
}

/// The status of the response, which comes before the end of the request.
fn status(client: &mut Http2Client, request: Request<()>) -> u16 {
    let mut asked = client.ask(request, true);
    client.head(&mut asked).expect("a response").status().as_u16()
}

fn server_and_client() -> (Server, Http2Client) {
    let server = Server::start(config(), describe);
    let mut client = Http2Client::connect(server.address);
    client.wait_for_settings();
    (server, client)
}

#[test]
fn a_protocol_that_is_no_token_is_refused_and_never_becomes_a_field() {
    let (server, mut client) = server_and_client();
    for protocol in [
        "websocket\r\nx-forwarded-for: 6.6.6.6",
        "websocket\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: test\r\n\r\n",
        "websocket\nx: y",
        "websocket\rx: y",
        "websocket\0",
        "web socket",
        " websocket",
        "websocket ",
        "websocket, other",
        "web:socket",
        "w\u{eb}bsocket",
        "",
    ] {
        assert_eq!(status(&mut client, connect(protocol)), 400, "{protocol:?}");
    }
    assert_eq!(client.get("/next").text().lines().next(), Some("GET /next"));
    assert_eq!(server.engine.stats().requests, 1);
}

#[test]
fn another_protocol_than_web_socket_is_refused_before_the_app_runs() {
    let (server, mut client) = server_and_client();
    for protocol in ["anything", "connect-udp", "websockets", "h2c"] {
        assert_eq!(status(&mut client, connect(protocol)), 501, "{protocol}");
    }
    assert_eq!(client.get("/next").text().lines().next(), Some("GET /next"));
    assert_eq!(server.engine.stats().requests, 1);
}

#[test]
fn fields_that_http1_would_read_in_another_way_are_refused() {
    let (server, mut client) = server_and_client();
    let with = |mut request: Request<()>, name: &'static str, value: &'static str| {
        request.headers_mut().insert(name, value.parse().expect("a value"));
        request
    };
    for value in [" a", "a ", "\ta", "a\t", " "] {
        let spaced = with(request("GET", "/"), "x", value);
        assert_eq!(status(&mut client, spaced), 400, "{value:?}");
    }
    for length in ["0", "5"] {
        let tunnel = with(connect("websocket"), "content-length", length);
        assert_eq!(status(&mut client, tunnel), 400, "{length}");
    }
    for (scheme, expected) in [("http", 200), ("https", 200), ("ftp", 400), ("wss", 400), ("file", 400)] {
        let mut request = request("GET", "/");
        *request.uri_mut() = format!("{scheme}://test/").parse().expect("a URI");
        let asked = client.ask(request, false);
        assert_eq!(client.response(asked).expect("a response").status, expected, "{scheme}");
    }
    assert_eq!(server.engine.stats().requests, 2);
}

#[test]
fn a_request_without_a_path_is_not_one_for_the_root() {
    let server = Server::start(config(), describe);
    let mut client = FrameClient::connect(server.address);
    let fields = [field(":method", "GET"), field(":scheme", "http"), field("host", "test")].concat();
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields));
    // Indexed: `:status: 400` (RFC 7541, appendix A).
    assert_eq!(client.find_of(HEADERS, 1).payload[0], 0x8c);
    assert_eq!(server.engine.stats().requests, 0);
}
