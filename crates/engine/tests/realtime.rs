//! Long-lived connections over real sockets: WebSockets, event streams, responses that continue, hijacked sockets.

mod support;

use fairlead_engine::pubsub::{Delivery, Match, Scope};
use fairlead_engine::{App, Client as Peer, Config, Engine, Event, Exchange, Offered, Overflow};
use fairlead_wire::websocket::Opcode;
use rustix::net::sockopt::set_socket_recv_buffer_size;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::web_socket::{frame, text, Received, WebSocket};
use support::{config, eventually, listen, Client, Server, PATIENCE};

/// Upgrades requests that ask for it, responds to the others, and records the events.
struct Chat {
    log: Mutex<Vec<String>>,
    /// Duration of a message.
    work: Duration,
}

impl App for Chat {
    fn call(&self, exchange: &mut Exchange<'_>) {
        support::web_socket::accept(exchange);
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        let line = match event {
            Event::Open => {
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                "open".to_string()
            }
            Event::Message { text, data } => {
                std::thread::sleep(self.work);
                client.write(&data, text);
                format!("message {}", String::from_utf8_lossy(&data))
            }
            Event::Shutdown => "shutdown".into(),
            Event::Close => "close".into(),
            Event::HandOver | Event::TakeOver(_) | Event::ContinueTakeover | Event::Departed => return,
            Event::Drained | Event::Deferred(_) | Event::Published(..) | Event::Replaced => return,
        };
        self.log.lock().expect("no panic").push(line);
    }
}

fn chat(config: Config, work: Duration) -> (Server, Arc<Chat>) {
    let app = Arc::new(Chat {
        log: Mutex::default(),
        work,
    });
    (Server::run(&listen(), config, None, Arc::clone(&app)), app)
}

impl Chat {
    fn log(&self) -> Vec<String> {
        self.log.lock().expect("no panic").clone()
    }
}

/// Defers three ids, at the open and with each message, and records the order.
struct Deferring {
    log: Mutex<Vec<String>>,
}

impl App for Deferring {
    fn call(&self, exchange: &mut Exchange<'_>) {
        assert!(exchange.start_upgrade());
        let _ = exchange.field(b"sec-websocket-protocol", b"chat");
        exchange.end_upgrade();
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        let line = match event {
            Event::Open => format!("open {}", client.defer(1)),
            Event::Message { data, .. } => {
                let both = client.defer(2) && client.defer(3);
                format!("message {} {both}", String::from_utf8_lossy(&data))
            }
            Event::Deferred(id) => {
                client.write(b"ran", true);
                format!("deferred {id}")
            }
            Event::Close => format!("close {}", client.defer(4)),
            _ => return,
        };
        self.log.lock().expect("no panic").push(line);
    }
}

#[test]
fn deferred_blocks_run_in_turn_and_never_after_the_close() {
    let app = Arc::new(Deferring { log: Mutex::default() });
    let server = Server::run(&listen(), config(), None, Arc::clone(&app));
    let mut client = WebSocket::connect(server.address);
    assert_eq!(client.receive(), text("ran"));
    client.send(Opcode::Text, b"one");
    assert_eq!([client.receive(), client.receive()], [text("ran"), text("ran")]);
    client.send(Opcode::Close, &1000u16.to_be_bytes());
    eventually("the close", || app.log.lock().expect("no panic").len() == 6);
    let expected = [
        "open true",
        "deferred 1",
        "message one true",
        "deferred 2",
        "deferred 3",
        "close false",
    ];
    assert_eq!(*app.log.lock().expect("no panic"), expected);
}

#[test]
fn an_app_that_defers_without_end_overflows() {
    let app = Arc::new(Deferring { log: Mutex::default() });
    let config = Config {
        client_pending_messages: 2,
        client_overflow: Overflow::Close,
        ..config()
    };
    let server = Server::run(&listen(), config, None, Arc::clone(&app));
    let ahead = [frame(Opcode::Text, b"one"), frame(Opcode::Text, b"two")].concat();
    let _client = WebSocket::connect_with(server.address, &ahead);
    eventually("the end", || server.engine.stats().overflowed >= 1);
}

#[test]
fn events_come_in_order_and_the_last_one_is_the_close() {
    let (server, app) = chat(config(), Duration::ZERO);
    let mut client = WebSocket::connect_with(server.address, &frame(Opcode::Text, b"early"));
    client.send(Opcode::Binary, &[0, 255]);
    client.send(Opcode::Ping, b"there?");
    assert_eq!(client.receive(), text("early"));
    let mut rest = [client.receive(), client.receive()];
    rest.sort_by_key(|received| matches!(received, Received::Pong(_)));
    assert_eq!(
        rest,
        [Received::Binary(vec![0, 255]), Received::Pong(b"there?".to_vec())]
    );
    client.send(Opcode::Close, &1000u16.to_be_bytes());
    assert_eq!(client.receive(), Received::Close(Some(1000)));
    assert_eq!(client.receive(), Received::End);
    eventually("the last event", || {
        app.log().last().is_some_and(|line| line == "close")
    });
    assert_eq!(app.log().first().map(String::as_str), Some("open"));
    assert_eq!(app.log().len(), 4);
    eventually("the place", || {
        server.engine.stats().connections == 0 && server.engine.stats().clients == 0
    });
}

#[test]
fn a_chatty_client_takes_turns_with_a_request() {
    let (server, app) = chat(config(), Duration::from_millis(2));
    let mut client = WebSocket::connect(server.address);
    client
        .stream
        .write_all(&frame(Opcode::Text, b"x").repeat(500))
        .expect("the server reads");
    eventually("a first message", || app.log().len() > 2);
    assert_eq!(server.connect().get("/").status, 200);
    let served = app.log().len();
    assert!(served < 250, "the request waited for {served} messages");
    (0..500).for_each(|_| assert_eq!(client.receive(), text("x")));
}

#[test]
fn what_is_published_reaches_everyone_and_one_who_does_not_read_is_cut_off() {
    let (server, _) = chat(
        Config {
            client_pending_bytes: 100_000,
            ..config()
        },
        Duration::ZERO,
    );
    let mut stalled = WebSocket::connect(server.address);
    let mut others: Vec<_> = (0..20).map(|_| WebSocket::connect(server.address)).collect();
    eventually("the subscriptions", || server.hub.stats().subscriptions == 21);
    let message = "m".repeat(20_000);
    for _ in 0..400 {
        let posted = server
            .hub
            .publish(b"all", message.as_bytes(), Scope::Process, &mut |wait| wait());
        assert_eq!(posted.undelivered, 0);
        others
            .iter_mut()
            .for_each(|other| assert_eq!(other.receive(), text(&message)));
    }
    assert_eq!(server.engine.stats().overflowed, 1);
    let code = loop {
        match stalled.receive() {
            Received::Text(_) => {}
            last => break last,
        }
    };
    assert_eq!(code, Received::Close(Some(1013)));
}

#[test]
fn a_client_that_took_much_and_then_sips_is_cut_off() {
    let limits = Config {
        client_pending_bytes: 80 << 20,
        write_timeout: Duration::from_secs(1),
        write_min_rate: 2 << 20,
        ..config()
    };
    let (server, _) = chat(limits, Duration::ZERO);
    let mut client = WebSocket::connect(server.address);
    // Otherwise the kernel may give a fast client a buffer so large that it holds the whole rest.
    set_socket_recv_buffer_size(&client.stream, 256 * 1024).expect("a buffer");
    eventually("the subscription", || server.hub.stats().subscriptions == 1);
    let message = "m".repeat(1 << 20);
    for _ in 0..64 {
        let publish = server
            .hub
            .publish(b"all", message.as_bytes(), Scope::Process, &mut |wait| wait());
        assert_eq!(publish.undelivered, 0);
    }
    // At the average rate these are worth 22 seconds. The client reads at less than half the rate, but never pauses for
    // the whole timeout.
    (0..44).for_each(|_| assert_eq!(client.receive(), text(&message)));
    let mut space = [0; 16_384];
    eventually("the client is disconnected", || {
        let _ = client.stream.read(&mut space);
        std::thread::sleep(Duration::from_millis(20));
        server.engine.stats().clients == 0
    });
}

#[test]
fn messages_for_one_who_does_not_read_can_be_dropped_instead() {
    let (server, _) = chat(
        Config {
            client_pending_bytes: 100_000,
            client_overflow: Overflow::Drop,
            ..config()
        },
        Duration::ZERO,
    );
    let mut stalled = WebSocket::connect(server.address);
    eventually("the subscription", || server.hub.stats().subscriptions == 1);
    let message = "m".repeat(20_000);
    let began = Instant::now();
    while server.engine.stats().dropped == 0 && began.elapsed() < PATIENCE {
        server
            .hub
            .publish(b"all", message.as_bytes(), Scope::Process, &mut |wait| wait());
    }
    assert!(server.engine.stats().dropped > 0);
    // While too much data is queued for it, responses are dropped as well.
    loop {
        stalled.send(Opcode::Text, b"still here");
        let responses = (0..20)
            .map(|_| stalled.receive())
            .find(|received| *received != text(&message));
        match responses {
            None => {}
            response => break assert_eq!(response, Some(text("still here"))),
        }
    }
}

#[test]
fn a_silent_client_is_asked_and_then_closed() {
    let (server, app) = chat(
        Config {
            ping_interval: 1,
            ..config()
        },
        Duration::ZERO,
    );
    let mut client = WebSocket::connect(server.address);
    assert_eq!(client.receive(), Received::Ping);
    assert_eq!(client.receive(), Received::End, "it has not answered");
    eventually("the close", || app.log().last().is_some_and(|line| line == "close"));
}

#[test]
fn a_client_that_answers_pings_stays() {
    let (server, app) = chat(
        Config {
            ping_interval: 1,
            ..config()
        },
        Duration::ZERO,
    );
    let mut client = WebSocket::connect(server.address);
    for _ in 0..4 {
        assert_eq!(client.receive(), Received::Ping);
        client.send(Opcode::Pong, b"");
    }
    assert_eq!(app.log(), ["open"]);
}

#[test]
fn a_client_whom_the_app_keeps_waiting_is_not_taken_for_silent() {
    let (server, app) = chat(
        Config {
            ping_interval: 1,
            message_max_bytes: 100,
            ..config()
        },
        Duration::from_millis(600),
    );
    let mut client = WebSocket::connect(server.address);
    let message = "m".repeat(100);
    client
        .stream
        .write_all(&frame(Opcode::Text, message.as_bytes()).repeat(6))
        .expect("the server reads");
    let mut responses = 0;
    while responses < 6 {
        match client.receive() {
            Received::Ping => client.send(Opcode::Pong, b""),
            received => {
                assert_eq!(received, text(&message));
                responses += 1;
            }
        }
    }
    assert!(!app.log().contains(&"close".to_string()));
}

#[test]
fn too_many_pings_close_with_1008() {
    let (server, _) = chat(
        Config {
            max_pings: 50,
            ..config()
        },
        Duration::ZERO,
    );
    let mut client = WebSocket::connect(server.address);
    let _ = client.stream.write_all(&frame(Opcode::Ping, b"").repeat(1_000));
    let last = loop {
        match client.receive() {
            Received::Pong(_) => {}
            last => break last,
        }
    };
    assert_eq!(last, Received::Close(Some(1008)));
}

#[test]
fn clients_are_told_when_the_server_ends() {
    let (server, app) = chat(config(), Duration::ZERO);
    let mut client = WebSocket::connect(server.address);
    client.send(Opcode::Text, b"hello");
    assert_eq!(client.receive(), text("hello"));
    server.engine.drain();
    assert_eq!(client.receive(), Received::Close(Some(1001)));
    client.send(Opcode::Close, &1001u16.to_be_bytes());
    assert_eq!(client.receive(), Received::End);
    assert!(server.engine.wait(Some(PATIENCE)));
    assert_eq!(app.log(), ["open", "message hello", "shutdown", "close"]);
}

#[test]
fn an_event_stream_gets_events_in_chunks_and_ends_with_the_last_one() {
    let (server, _) = chat(config(), Duration::ZERO);
    let mut client = server.connect();
    client.send("GET /events HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n");
    eventually("the subscription", || server.hub.stats().subscriptions == 1);
    server
        .hub
        .publish(b"all", b"one\ntwo", Scope::Process, &mut |wait| wait());
    server.hub.publish(b"all", b"three", Scope::Process, &mut |wait| wait());
    eventually("the delivery", || server.hub.stats().counted.delivered == 2);
    server.engine.drain();
    let mut everything = String::new();
    client
        .stream
        .read_to_string(&mut everything)
        .expect("the server ends the connection");
    let (head, body) = everything.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("\r\ncontent-type: text/event-stream\r\n"), "{head}");
    assert!(head.contains("\r\ntransfer-encoding: chunked"), "{head}");
    assert!(head.contains("\r\nconnection: close"), "{head}");
    assert_eq!(
        body,
        "d\r\nretry: 3472\n\n\r\n15\r\ndata: one\ndata: two\n\n\r\nd\r\ndata: three\n\n\r\n0\r\n\r\n"
    );
}

/// Responses that continue after the app has returned, and sockets that the app takes.
struct Going {
    streams: Mutex<Vec<Arc<Peer>>>,
    sockets: Mutex<Vec<TcpStream>>,
}

impl App for Going {
    fn call(&self, exchange: &mut Exchange<'_>) {
        if exchange.request().target() == b"/socket" {
            let socket = exchange.hijack().expect("a descriptor");
            self.sockets.lock().expect("no panic").push(socket.into());
            return;
        }
        exchange.start(200);
        exchange.end_head(None);
        let _ = exchange.write(b"first");
        assert!(exchange.is_flushed());
        self.streams.lock().expect("no panic").extend(exchange.detach());
    }
}

fn going() -> (Server, Arc<Going>) {
    let app = Arc::new(Going {
        streams: Mutex::default(),
        sockets: Mutex::default(),
    });
    (Server::run(&listen(), config(), None, Arc::clone(&app)), app)
}

fn stream_of(app: &Going) -> Arc<Peer> {
    eventually("the stream", || !app.streams.lock().expect("no panic").is_empty());
    app.streams.lock().expect("no panic").remove(0)
}

#[test]
fn an_answer_goes_on_after_the_app_has_returned() {
    let (server, app) = going();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let stream = stream_of(&app);
    assert_eq!(stream.offer(b"second"), Offered::Taken);
    stream.close(None, "");
    assert_eq!(stream.offer(b"late"), Offered::Gone);
    let response = client.response();
    assert!(!response.head.contains("connection:"), "{}", response.head);
    assert_eq!(response.text(), "firstsecond");
    // The connection stays open: the next request is served.
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream_of(&app).close(None, "");
    let response = client.response();
    assert!(response.head.contains("connection: close"), "{}", response.head);
    assert_eq!(response.text(), "first");
    assert!(client.is_closed());
}

#[test]
fn requests_that_arrive_during_a_stream_wait_for_its_end() {
    let (server, app) = going();
    let mut client = server.connect();
    client.send(&"GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(2));
    let first = stream_of(&app);
    client.send(&"GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(2));
    first.close(None, "");
    assert_eq!(client.response().text(), "first");
    for rest in ["a", "b", "c"] {
        let stream = stream_of(&app);
        assert_eq!(stream.offer(rest.as_bytes()), Offered::Taken);
        stream.close(None, "");
        assert_eq!(client.response().text(), format!("first{rest}"));
    }
    assert_eq!(server.engine.stats().connections, 1);
    drop(client);
    eventually("the place", || server.engine.stats().connections == 0);
}

#[test]
fn a_client_that_has_ended_its_half_gets_the_rest() {
    let (server, app) = going();
    for head in ["HTTP/1.1\r\nHost: test\r\n\r\n", "HTTP/1.0\r\n\r\n"] {
        let mut client = server.connect();
        client.send(&format!("GET / {head}"));
        let stream = stream_of(&app);
        client
            .stream
            .shutdown(std::net::Shutdown::Write)
            .expect("an open socket");
        let reader = std::thread::spawn(move || client.rest());
        let piece = vec![b'x'; 60_000];
        (0..100).for_each(|_| {
            while stream.offer(&piece) == Offered::Full {
                stream.wait_for_room();
            }
        });
        stream.close(None, "");
        let received = reader.join().expect("no panic");
        assert_eq!(
            received.iter().filter(|byte| **byte == b'x').count(),
            6_000_000,
            "{head}"
        );
        assert_eq!(received.ends_with(b"\r\n0\r\n\r\n"), head.starts_with("HTTP/1.1"));
        eventually("the place", || server.engine.stats().connections == 0);
    }
}

#[test]
fn a_stream_whose_client_was_reset_is_gone_though_nothing_is_written() {
    let (server, app) = going();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\nGET ");
    let stream = stream_of(&app);
    // Unread data makes the close a reset.
    drop(client);
    eventually("the end", || !stream.is_open());
    eventually("the place", || server.engine.stats().connections == 0);
}

#[test]
fn a_stream_takes_no_more_than_its_client_does() {
    let (server, app) = going();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let stream = stream_of(&app);
    let piece = vec![b'x'; 60_000];
    let mut pieces = 0u64;
    while stream.offer(&piece) == Offered::Taken {
        pieces += 1;
        assert!(pieces < 10_000, "it takes everything");
    }
    assert_eq!(stream.offer(&piece), Offered::Full);
    let reader = std::thread::spawn(move || client.response().body.len());
    while stream.offer(&piece) == Offered::Full {
        stream.wait_for_room();
    }
    stream.close(None, "");
    assert_eq!(reader.join().expect("no panic") as u64, (pieces + 1) * 60_000 + 5);
}

#[test]
fn a_stream_notices_that_its_client_is_gone() {
    let (server, app) = going();
    let mut client = server.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let stream = stream_of(&app);
    drop(client);
    eventually("the end", || stream.offer(b"x") == Offered::Gone);
    eventually("the place", || server.engine.stats().connections == 0);
}

#[test]
fn a_socket_that_is_given_away_brings_what_was_read_ahead() {
    let (server, app) = going();
    for ahead in ["", "more than the request"] {
        let mut client: Client = server.connect();
        client.send(&format!("GET /socket HTTP/1.1\r\nHost: test\r\n\r\n{ahead}"));
        eventually("the socket", || !app.sockets.lock().expect("no panic").is_empty());
        let mut socket = app.sockets.lock().expect("no panic").remove(0);
        socket.set_nonblocking(false).expect("a socket");
        eventually("the engine forgets it", || server.engine.stats().connections == 0);
        client.send(", and later");
        let mut received = vec![0; ahead.len() + 11];
        socket.read_exact(&mut received).expect("it comes");
        assert_eq!(String::from_utf8_lossy(&received), format!("{ahead}, and later"));
        socket.write_all(b"response").expect("an open socket");
        drop(socket);
        let mut response = String::new();
        client
            .stream
            .read_to_string(&mut response)
            .expect("the new owner ends the connection");
        assert_eq!(response, "response");
    }
}

/// Has its clients subscribe to each message as a channel, and then as a pattern.
struct Subscribing;

impl App for Subscribing {
    fn call(&self, exchange: &mut Exchange<'_>) {
        if exchange.start_upgrade() {
            let _ = exchange.field(b"sec-websocket-protocol", b"chat");
            exchange.end_upgrade();
        }
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        if let Event::Message { data, .. } = event {
            let kinds = [Match::Exact, Match::Glob];
            let subscribed = kinds.map(|kind| client.subscribe(&data, kind, Delivery::Text).is_some());
            client.write(format!("{subscribed:?}").as_bytes(), true);
        }
    }
}

#[test]
fn a_client_gets_no_more_patterns_by_way_of_names_that_it_has() {
    let limits = Config {
        max_patterns: 2,
        ..config()
    };
    let server = Server::run(&listen(), limits, None, Arc::new(Subscribing));
    let mut client = WebSocket::connect(server.address);
    let mut subscribe = |name: &[u8]| {
        client.send(Opcode::Text, name);
        client.receive()
    };
    assert_eq!(subscribe(b"a*"), text("[true, true]"));
    assert_eq!(subscribe(b"b*"), text("[true, true]"));
    assert_eq!(subscribe(b"c*"), text("[true, false]"));
    assert_eq!(subscribe(b"c"), text("[true, true]"), "it is no pattern");
    assert_eq!(
        subscribe(b"b*"),
        text("[true, true]"),
        "as a channel it is no pattern meanwhile"
    );
    assert_eq!(
        server.hub.stats().subscriptions,
        4,
        "the refused one is still a channel"
    );
}

#[test]
fn an_engine_that_is_stopped_lets_its_clients_go() {
    let (server, _) = chat(config(), Duration::ZERO);
    let mut client = WebSocket::connect(server.address);
    client.send(Opcode::Text, b"hello");
    assert_eq!(client.receive(), text("hello"));
    let engine: Arc<Engine> = Arc::clone(&server.engine);
    drop(server);
    assert_eq!(client.receive(), Received::Close(Some(1001)));
    assert_eq!(client.receive(), Received::End);
    assert_eq!((engine.stats().connections, engine.stats().clients), (0, 0));
}
