//! Memory and disk of all requests together: a client that needs more than is free is refused or goes to disk, small
//! requests are served meanwhile, and everything is released.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use fairlead_engine::{App, Body, Client as Peer, Config, Event, Exchange, RequestTotals};
use fairlead_wire::websocket::Opcode;
use std::io::Write;
use std::sync::Arc;
use support::web_socket::{frame, text, Received, WebSocket};
use support::{config, eventually, listen, reply, Client, Server};

fn serve(memory: u64, disk: u64) -> (Server, Arc<RequestTotals>) {
    let totals = RequestTotals::new(memory, disk);
    let config = Config {
        request_totals: Arc::clone(&totals),
        body_memory_bytes: 100_000,
        head_max_bytes: 65_536,
        target_max_bytes: 65_536,
        ..config()
    };
    (Server::start(config, measure), totals)
}

fn measure(exchange: &mut Exchange<'_>) {
    let body = exchange.take_body();
    let kind = if matches!(body, Body::File(..)) {
        "file"
    } else {
        "memory"
    };
    reply(exchange, &format!("{kind} {}", body.len()));
}

/// An upload without its last byte.
fn begin(server: &Server, length: usize) -> Client {
    let mut client = server.connect();
    let body = "x".repeat(length - 1);
    client.send(&format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    client
}

/// A head without its end.
fn begin_head(server: &Server, length: usize) -> Client {
    let mut client = server.connect();
    client.send(&format!(
        "GET / HTTP/1.1\r\nHost: test\r\nX-Long: {}",
        "x".repeat(length)
    ));
    client
}

fn assert_is_refused(client: &mut Client) {
    let response = client.response();
    assert_eq!(response.status, 503);
    assert!(response.head.contains("retry-after: 1\r\n"), "{}", response.head);
}

#[test]
fn bodies_that_take_too_much_of_the_disk_are_refused_and_the_others_arrive() {
    let (server, totals) = serve(1 << 20, 1_000_000);
    let mut early: Vec<Client> = (0..2)
        .map(|number| {
            let client = begin(&server, 400_000);
            eventually("it has arrived", || totals.used().1 >= 399_000 * (number + 1));
            client
        })
        .collect();
    let mut late = begin(&server, 400_000);
    assert_is_refused(&mut late);
    for client in &mut early {
        assert_eq!(client.send("x").response().text(), "file 400000");
    }
    eventually("everything is released", || totals.used() == (0, 0));
    assert_eq!(begin(&server, 900_000).send("x").response().text(), "file 900000");
}

#[test]
fn a_body_that_leaves_in_the_middle_gives_its_place_back() {
    let (server, totals) = serve(1 << 20, 500_000);
    let client = begin(&server, 400_000);
    eventually("it has arrived", || totals.used().1 >= 399_000);
    drop(client);
    eventually("everything is released", || totals.used() == (0, 0));
    assert_eq!(begin(&server, 400_000).send("x").response().text(), "file 400000");
}

#[test]
fn where_memory_is_scarce_bodies_go_to_files_sooner() {
    let (server, totals) = serve(150_000, 1 << 20);
    let mut first = begin(&server, 90_000);
    eventually("it has arrived", || totals.used().0 >= 89_000);
    let mut second = begin(&server, 90_000);
    assert_eq!(second.send("x").response().text(), "file 90000");
    assert_eq!(server.connect().get("/").text(), "memory 0");
    assert_eq!(begin(&server, 10_000).send("x").response().text(), "memory 10000");
    assert_eq!(first.send("x").response().text(), "memory 90000");
    eventually("everything is released", || totals.used() == (0, 0));
}

#[test]
fn where_memory_is_scarce_large_heads_are_refused_and_small_ones_are_not() {
    // A quarter of it is for messages.
    let (server, totals) = serve(200_000, 1 << 20);
    let mut early: Vec<Client> = (0..2).map(|_| begin_head(&server, 50_000)).collect();
    eventually("they are here", || totals.used().0 >= 100_000);
    assert_is_refused(&mut begin_head(&server, 60_000));
    assert_eq!(server.connect().get("/").text(), "memory 0");
    assert_eq!(
        begin_head(&server, 10_000).send("\r\n\r\n").response().text(),
        "memory 0"
    );
    for client in &mut early {
        assert_eq!(client.send("\r\n\r\n").response().text(), "memory 0");
    }
    eventually("everything is released", || totals.used() == (0, 0));
    assert_eq!(
        begin_head(&server, 60_000).send("\r\n\r\n").response().text(),
        "memory 0"
    );
}

/// Echoes messages.
struct Echo;

impl App for Echo {
    fn call(&self, exchange: &mut Exchange<'_>) {
        exchange.start_upgrade();
        let _ = exchange.field(b"sec-websocket-protocol", b"chat");
        exchange.end_upgrade();
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        if let Event::Message { text, data } = event {
            client.write(&data, text);
        }
    }
}

#[test]
fn where_memory_is_scarce_the_oldest_message_that_comes_in_pieces_gives_way() {
    // Half of it is for messages.
    let totals = RequestTotals::new(410_000, 0);
    let config = Config {
        request_totals: Arc::clone(&totals),
        ..config()
    };
    let server = Server::run(&listen(), config, None, Arc::new(Echo));
    let message = "x".repeat(100_000);
    let whole = frame(Opcode::Text, message.as_bytes());
    let begin = || {
        let mut client = WebSocket::connect(server.address);
        client.stream.write_all(&whole[..60_000]).expect("an open connection");
        client
    };
    let mut early: Vec<WebSocket> = (1..=2)
        .map(|number| {
            let client = begin();
            eventually("it has arrived", || totals.used().0 >= 59_000 * number);
            // The first one is much older than the second one.
            std::thread::sleep(std::time::Duration::from_millis(400 / number));
            client
        })
        .collect();
    early[1]
        .stream
        .write_all(&whole[60_000..98_000])
        .expect("an open connection");
    eventually("more of it has arrived", || totals.used().0 >= 157_000);
    let mut late = begin();
    assert_eq!(early[0].receive(), Received::Close(Some(1013)));
    let mut small = WebSocket::connect(server.address);
    small.send(Opcode::Text, b"hello");
    assert_eq!(small.receive(), text("hello"));
    for (client, sent) in [(&mut late, 60_000), (&mut early[1], 98_000)] {
        client.stream.write_all(&whole[sent..]).expect("an open connection");
        assert_eq!(client.receive(), text(&message));
    }
    eventually("everything is released", || totals.used() == (0, 0));
}
