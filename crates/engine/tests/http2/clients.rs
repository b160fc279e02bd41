//! Long-lived HTTP/2 streams: WebSockets, event streams and detached bodies, and the count of connections when they
//! end.

use crate::support::frames::{FrameClient, NO_ERROR};
use crate::support::http2::{get, request, Asked, Http2Client};
use crate::support::*;
use fairlead_engine::{Client as Peer, Exchange};
use h2::ext::Protocol;
use http::Request;
use std::sync::{mpsc, Arc, Mutex};
use std::task::Poll;

/// The clients that a server has made, and the release of its slow request.
struct Staying {
    server: Server,
    made: mpsc::Receiver<Arc<Peer>>,
    release: mpsc::Sender<()>,
}

fn staying() -> Staying {
    let ((make, made), (release, hold)) = (mpsc::channel(), mpsc::channel::<()>());
    let (make, hold) = (Mutex::new(make), Mutex::new(hold));
    let mut config = config();
    (config.min_threads, config.max_threads) = (2, 2);
    let server = Server::start(config, move |exchange: &mut Exchange<'_>| {
        let client = match path(exchange).as_str() {
            "/slow" => {
                let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
                return reply(exchange, "done");
            }
            "/detached" => {
                exchange.start(200);
                exchange.end_head(None);
                exchange.detach()
            }
            _ => {
                assert!(exchange.start_upgrade(), "it asks for an upgrade");
                exchange.end_upgrade()
            }
        };
        let client = client.expect("a client");
        make.lock().expect("no panic").send(client).expect("the test waits");
    });
    Staying { server, made, release }
}

fn events() -> Request<()> {
    let mut request = get("/events");
    let fields = request.headers_mut();
    fields.insert("accept", http::HeaderValue::from_static("text/event-stream"));
    request
}

fn web_socket() -> Request<()> {
    let mut request = request("CONNECT", "/socket");
    request.extensions_mut().insert(Protocol::from_static("websocket"));
    let fields = request.headers_mut();
    fields.insert("sec-websocket-version", http::HeaderValue::from_static("13"));
    request
}

/// Opens a long-lived stream; the client's half of a WebSocket stays open, too.
fn open(staying: &Staying, client: &mut Http2Client, request: Request<()>) -> (Asked, Arc<Peer>) {
    let more = request.method() == "CONNECT";
    let mut asked = client.ask(request, more);
    assert_eq!(client.head(&mut asked).expect("a response").status(), 200);
    (asked, staying.made.recv_timeout(PATIENCE).expect("it is made"))
}

fn ready(holds: bool) -> Poll<()> {
    match holds {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}

fn wait_for_no_clients(server: &Server, client: &mut Http2Client) {
    client.wait("their end", |_| ready(server.engine.stats().clients == 0));
}

#[test]
fn streams_that_stay_and_end_leave_their_connection_counted_once() {
    let staying = staying();
    let server = &staying.server;
    let mut client = Http2Client::connect(server.address);
    client.wait_for_settings();
    for made in [events, web_socket, || get("/detached")] {
        let (asked, peer) = open(&staying, &mut client, made());
        let stats = server.engine.stats();
        assert_eq!((stats.connections, stats.clients), (1, 1));
        peer.close(None, "");
        drop(asked);
        wait_for_no_clients(server, &mut client);
        assert_eq!(server.engine.stats().connections, 1);
    }
    drop(client);
    eventually("nothing is counted", || {
        let stats = server.engine.stats();
        (stats.connections, stats.clients) == (0, 0)
    });
}

#[test]
fn a_drain_waits_for_requests_of_a_session_whose_other_streams_have_ended() {
    let staying = staying();
    let server = &staying.server;
    let mut client = Http2Client::connect(server.address);
    client.wait_for_settings();
    for _ in 0..3 {
        let (asked, peer) = open(&staying, &mut client, events());
        peer.close(None, "");
        drop(asked);
    }
    wait_for_no_clients(server, &mut client);
    let slow = client.ask(get("/slow"), false);
    client.wait("it runs", |_| ready(server.engine.stats().busy_threads == 1));
    let mut idle = FrameClient::connect(server.address);
    idle.ping();
    server.engine.drain();
    // Now the running request is the only thing that delays the end.
    assert_eq!(idle.goaway(), Some(NO_ERROR));
    staying.release.send(()).expect("it waits");
    assert_eq!(client.response(slow).expect("a response").text(), "done");
}
