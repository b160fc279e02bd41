//! Memory of all WebSockets and event streams together: for incomplete messages, and for data that clients do not read.
//! Some of these clients are disconnected, others are served, and the memory is returned.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use fairlead_engine::pubsub::{Delivery, Match, Scope};
use fairlead_engine::{
    App, Client as Peer, Config, Event, Exchange, Overflow, RemoteAddress, RequestTotals, TrustedProxies,
};
use fairlead_wire::websocket::Opcode;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::frames::{
    block, field, frame as h2_frame, get, setting, window_update, FrameClient, DATA, END_HEADERS, END_STREAM, GOAWAY,
    HEADERS, INITIAL_WINDOW,
};
use support::web_socket::{frame, text, Received, WebSocket};
use support::{config, eventually, listen, path, reply, Client, Server};

const MEGABYTE: usize = 1 << 20;

/// Responds to a message with its length, sends as many bytes as a message requests, and serves requests.
struct Talker {
    peers: Mutex<Vec<Arc<Peer>>>,
    /// First data for each client, in messages of 50 kB.
    greeting: usize,
    is_held: AtomicBool,
}

const PIECE: usize = 50_000;

/// The length of a response to `/large`.
const LARGE: usize = 6_000_000;

impl App for Talker {
    fn call(&self, exchange: &mut Exchange<'_>) {
        if path(exchange) == "/large" {
            reply(exchange, &"z".repeat(LARGE));
        } else if exchange.start_upgrade() {
            let _ = exchange.field(b"sec-websocket-protocol", b"chat");
            exchange.end_upgrade();
        } else {
            exchange.respond_plainly(200);
        }
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        match event {
            Event::Open => {
                client.subscribe(b"all", Match::Exact, Delivery::Text);
                for _ in 0..self.greeting / PIECE {
                    client.write(&[b'x'; PIECE], true);
                }
                self.peers.lock().unwrap().push(Arc::clone(client));
            }
            Event::Message { text, data } => {
                eventually("permission to continue", || !self.is_held.load(SeqCst));
                match data.strip_prefix(b"send ") {
                    Some(length) => {
                        let length = std::str::from_utf8(length).unwrap().parse().unwrap();
                        client.write(&vec![b'y'; length], text);
                    }
                    None => _ = client.write(data.len().to_string().as_bytes(), text),
                }
            }
            _ => {}
        }
    }
}

fn serve(config: Config, greeting: usize) -> (Server, Arc<Talker>) {
    let app = Arc::new(Talker {
        peers: Mutex::default(),
        greeting,
        is_held: AtomicBool::new(false),
    });
    let socket = listen();
    set_socket_send_buffer_size(&socket, 4_096).expect("a small buffer");
    (Server::run(&socket, config, None, Arc::clone(&app)), app)
}

fn small_reader(server: &Server) -> WebSocket {
    let client = WebSocket::connect(server.address);
    set_socket_recv_buffer_size(&client.stream, 4_096).expect("a small buffer");
    client
}

/// A client that has sent this much of a message of two hundred kilobytes.
fn begin(server: &Server, length: usize) -> WebSocket {
    let mut client = WebSocket::connect(server.address);
    client
        .stream
        .write_all(&frame(Opcode::Binary, &[b'x'; 200_000])[..length])
        .expect("the server reads");
    client
}

fn with_memory(bytes: u64) -> Config {
    Config {
        request_totals: RequestTotals::new(bytes, 1 << 30),
        head_max_bytes: 65_536,
        ..config()
    }
}

#[test]
fn messages_that_are_not_completed_give_way_to_others() {
    let (server, _) = serve(with_memory(MEGABYTE as u64), 0);
    let mut attackers: Vec<WebSocket> = Vec::new();
    for number in 1..=20 {
        attackers.push(begin(&server, 100_000));
        let least = 99_000 * number.min(3);
        eventually("it has arrived", || server.totals.used().0 >= least);
    }
    assert!(
        server.totals.used().0 <= MEGABYTE as u64 / 2,
        "{:?}",
        server.totals.used()
    );
    assert_eq!(attackers[0].receive(), Received::Close(Some(1013)));
    // Meanwhile, requests with large heads, and messages, are served.
    let mut client = server.connect();
    client.send(&format!(
        "GET / HTTP/1.1\r\nHost: test\r\nX-Long: {}\r\n\r\n",
        "x".repeat(60_000)
    ));
    assert_eq!(client.response().status, 200);
    for _ in 0..10 {
        let mut good = begin(&server, 150_000);
        eventually("it is read", || server.totals.used().0 > 0);
        let whole = frame(Opcode::Binary, &[b'x'; 200_000]);
        good.stream.write_all(&whole[150_000..]).expect("the server reads");
        assert_eq!(good.receive(), Received::Binary(b"200000".to_vec()));
    }
    drop(attackers);
    eventually("everything is released", || server.totals.used() == (0, 0));
}

#[test]
fn bodies_that_stand_still_leave_messages_and_heads_a_part() {
    let limits = Config {
        body_memory_bytes: 112_000,
        ..with_memory(2 * MEGABYTE as u64)
    };
    let (server, _) = serve(limits, 0);
    let mut uploads: Vec<Client> = (0..40).map(|_| server.connect()).collect();
    let body = "x".repeat(110_000);
    for upload in &mut uploads {
        upload.send(&format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 111000\r\n\r\n{body}"
        ));
    }
    eventually("most of the memory is taken", || {
        server.totals.used().0 > MEGABYTE as u64
    });
    eventually("the others go to the disk", || server.totals.used().1 > 20 * 100_000);
    let whole = frame(Opcode::Binary, &[b'x'; 200_000]);
    let mut messages: Vec<WebSocket> = (0..2).map(|_| begin(&server, 150_000)).collect();
    for message in &mut messages {
        message.stream.write_all(&whole[150_000..]).expect("the server reads");
        assert_eq!(message.receive(), Received::Binary(b"200000".to_vec()));
    }
    let mut client = server.connect();
    client.send(&format!(
        "GET / HTTP/1.1\r\nHost: test\r\nX-Long: {}\r\n\r\n",
        "x".repeat(60_000)
    ));
    assert_eq!(client.response().status, 200);
    for upload in &mut uploads {
        assert_eq!(upload.send(&"x".repeat(1_000)).response().status, 200);
    }
}

#[test]
fn a_message_that_is_not_completed_ends_its_client_however_often_it_pings() {
    let limits = Config {
        body_timeout: Duration::from_secs(1),
        ..with_memory(1 << 28)
    };
    let (server, _) = serve(limits, 0);
    let (mut slow, mut small) = (WebSocket::connect(server.address), begin(&server, 10_000));
    let began = Instant::now();
    let mut fragment = frame(Opcode::Binary, &[b'x'; 100_000]);
    // Without FIN: pings may follow it.
    fragment[0] &= 0x7f;
    slow.stream.write_all(&fragment).expect("the server reads");
    let mut steady = begin(&server, 100_000);
    let whole = frame(Opcode::Binary, &[b'x'; 200_000]);
    let mut sent = 100_000;
    slow.stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
    let mut is_ended = false;
    while !is_ended && sent < 199_000 {
        let _ = slow.stream.write_all(&frame(Opcode::Ping, b""));
        let mut space = [0; 4_096];
        let count = slow.stream.read(&mut space).unwrap_or(0);
        is_ended = space[..count].windows(2).any(|pair| pair == 1008u16.to_be_bytes());
        // At least ten times the minimum rate.
        steady.stream.write_all(&whole[sent..sent + 500]).expect("it stays");
        sent += 500;
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(is_ended);
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    steady.stream.write_all(&whole[sent..]).expect("it stays");
    small.stream.write_all(&whole[10_000..]).expect("it stays");
    for client in [&mut steady, &mut small] {
        assert_eq!(client.receive(), Received::Binary(b"200000".to_vec()));
    }
}

#[test]
fn a_message_that_the_server_does_not_read_is_not_late() {
    let limits = Config {
        body_timeout: Duration::from_secs(1),
        messages_pending_bytes: 100_000,
        max_threads: 2,
        ..with_memory(1 << 28)
    };
    let (server, app) = serve(limits, 0);
    let mut waiting = begin(&server, 100_000);
    eventually("it has arrived", || server.totals.used().0 >= 99_000);
    app.is_held.store(true, SeqCst);
    let mut other = WebSocket::connect(server.address);
    other.send(Opcode::Binary, &[b'x'; 100_000]);
    eventually("no room for more", || {
        server.engine.stats().pending_message_bytes >= 100_000
    });
    let whole = frame(Opcode::Binary, &[b'x'; 200_000]);
    waiting
        .stream
        .write_all(&whole[100_000..])
        .expect("the kernel takes it");
    std::thread::sleep(Duration::from_millis(2_500));
    app.is_held.store(false, SeqCst);
    assert_eq!(other.receive(), Received::Binary(b"100000".to_vec()));
    assert_eq!(waiting.receive(), Received::Binary(b"200000".to_vec()));
}

/// A client with this address that has begun a message of this length; the head announces a longer one.
fn begin_as(server: &Server, client: &str, length: usize) -> WebSocket {
    let mut client = WebSocket::connect_with_field(server.address, &format!("X-Client: {client}"));
    client
        .stream
        .write_all(&frame(Opcode::Binary, &[b'x'; 200_000])[..length])
        .expect("the server reads");
    client
}

#[test]
fn an_address_with_many_small_messages_gives_way_before_another_with_a_larger_one() {
    let limits = Config {
        remote_address: RemoteAddress::Field(b"x-client"[..].into()),
        ..with_memory(2 * MEGABYTE as u64)
    };
    let (server, _) = serve(limits, 0);
    let began = Instant::now();
    let mut good = begin_as(&server, "10.0.0.9", 150_000);
    eventually("it has arrived", || server.totals.used().0 >= 149_000);
    // Messages may take 1 MiB.
    let mut attackers: Vec<WebSocket> = Vec::new();
    for number in 1..=20 {
        attackers.push(begin_as(&server, "10.0.0.3", 40_000));
        eventually("it has arrived", || server.totals.used().0 >= 149_000 + 39_000 * number);
    }
    // The good message is the oldest and the largest, but far smaller than the others together.
    std::thread::sleep(began.elapsed());
    let whole = frame(Opcode::Binary, &[b'x'; 200_000]);
    let mut last = begin_as(&server, "10.0.0.3", whole.len());
    assert_eq!(last.receive(), Received::Binary(b"200000".to_vec()), "others closed");
    good.stream.write_all(&whole[150_000..]).expect("it stays");
    assert_eq!(good.receive(), Received::Binary(b"200000".to_vec()));
    assert_eq!(attackers[0].receive(), Received::Close(Some(1013)));
}

/// A WebSocket on a stream of an HTTP/2 connection (RFC 8441) that has sent this much of a message.
fn begin_in_session(client: &mut FrameClient, stream: u32, length: usize) {
    let fields = [
        field(":method", "CONNECT"),
        field(":protocol", "websocket"),
        field(":scheme", "http"),
        field(":path", "/ws"),
        field(":authority", "test"),
        field("sec-websocket-version", "13"),
    ];
    client.send(&h2_frame(HEADERS, END_HEADERS, stream, &fields.concat()));
    client.find_of(HEADERS, stream);
    for part in frame(Opcode::Binary, &[b'x'; 200_000])[..length].chunks(16_000) {
        client.send(&h2_frame(DATA, 0, stream, part));
    }
}

#[test]
fn messages_of_a_session_that_are_not_completed_have_its_share_together() {
    let (server, _) = serve(with_memory(MEGABYTE as u64), 0);
    let mut client = FrameClient::connect(server.address);
    // The connection may use 128 KiB.
    for stream in [1, 3, 5] {
        begin_in_session(&mut client, stream, 60_000);
    }
    let end = client.find(|frame| frame.kind == DATA);
    assert_eq!(
        end.payload[..4],
        [0x88, end.payload[1], 0x03, 0xf5],
        "it is closed with 1013"
    );
    assert!(server.totals.used().0 <= 128 * 1024, "{:?}", server.totals.used());
    let mut good = begin(&server, 150_000);
    good.stream
        .write_all(&frame(Opcode::Binary, &[b'x'; 200_000])[150_000..])
        .expect("the server reads");
    assert_eq!(good.receive(), Received::Binary(b"200000".to_vec()));
}

/// Longer than the time until a client counts as a slow reader.
const UNTIL_KNOWN: Duration = Duration::from_millis(1_200);

/// For all unsent responses.
const TOTAL: usize = 8 * MEGABYTE;

fn with_total(total: usize) -> Config {
    Config {
        response_memory_total_bytes: total as u64,
        client_pending_bytes: MEGABYTE,
        max_threads: 2,
        ..config()
    }
}

fn clients(server: &Server) -> i64 {
    server.engine.stats().clients
}

/// Requests and other clients are served, and a client that reads gets everything.
fn assert_others_are_served(server: &Server) {
    assert_eq!(server.connect().get("/").status, 200);
    let mut reader = WebSocket::connect(server.address);
    reader.send(Opcode::Text, b"send 1000000");
    let received = (0..40)
        .map(|_| reader.receive())
        .find(|received| *received == text(&"y".repeat(1_000_000)));
    assert!(received.is_some());
}

/// `connect` makes a client that gets a megabyte as its first data and does not read it.
fn have_the_total_together<C>(connect: impl Fn(&Server) -> C, left: impl Fn(&Server, &mut [C]) -> usize) {
    let (server, app) = serve(with_total(TOTAL), MEGABYTE);
    let mut crowd: Vec<C> = (0..40).map(|_| connect(&server)).collect();
    eventually("all are greeted", || app.peers.lock().unwrap().len() == 40);
    let left = left(&server, &mut crowd);
    assert!((5..=TOTAL / (MEGABYTE * 8 / 10)).contains(&left), "{left}");
    // Before this, the server cannot distinguish the crowd from a client that is as new.
    std::thread::sleep(UNTIL_KNOWN);
    assert_others_are_served(&server);
    drop(crowd);
}

#[test]
fn web_sockets_that_do_not_read_have_the_total_together() {
    have_the_total_together(small_reader, |server, _| {
        let most = (TOTAL / (MEGABYTE * 8 / 10)) as i64;
        eventually("the others are disconnected", || clients(server) <= most);
        clients(server) as usize
    });
}

fn event_stream(server: &Server) -> Client {
    let mut client = server.connect();
    set_socket_recv_buffer_size(&client.stream, 4_096).expect("a small buffer");
    client.send("GET /events HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n");
    client
}

#[test]
fn event_streams_that_do_not_read_have_the_total_together() {
    have_the_total_together(event_stream, |server, _| {
        let most = (TOTAL / (MEGABYTE * 8 / 10)) as i64;
        eventually("the others are disconnected", || clients(server) <= most);
        clients(server) as usize
    });
}

/// Its windows stay closed.
fn event_stream_of_http2(server: &Server) -> FrameClient {
    let mut client = FrameClient::connect(server.address);
    let fields = [block("GET", "/events"), field("accept", "text/event-stream")].concat();
    let request = h2_frame(HEADERS, END_HEADERS | END_STREAM, 1, &fields);
    client.send(&[setting(INITIAL_WINDOW, 0), request].concat());
    client
}

#[test]
fn event_streams_of_sessions_that_do_not_read_have_the_total_together() {
    have_the_total_together(event_stream_of_http2, |server, crowd| {
        let most = (TOTAL / (MEGABYTE * 8 / 10)) as i64;
        eventually("the others are disconnected", || clients(server) <= most);
        crowd.len()
            - crowd
                .iter_mut()
                .filter_map(|client| client.has_goaway().then_some(()))
                .count()
    });
}

#[test]
fn a_client_that_reads_is_spared_although_it_has_the_largest_share() {
    let (server, app) = serve(with_total(TOTAL), 0);
    let idlers: Vec<WebSocket> = (0..10).map(|_| small_reader(&server)).collect();
    eventually("all are here", || app.peers.lock().unwrap().len() == 10);
    let peers = app.peers.lock().unwrap().clone();
    for peer in &peers[..7] {
        assert!(peer.write(&vec![b'x'; MEGABYTE], true));
    }
    std::thread::sleep(UNTIL_KNOWN);
    let mut reader = WebSocket::connect(server.address);
    set_socket_recv_buffer_size(&reader.stream, 65_536).expect("a buffer");
    reader.send(Opcode::Text, b"send 7000000");
    let mut space = vec![0; 50_000];
    let mut read = 0;
    while read < 2_000_000 {
        read += reader.stream.read(&mut space).expect("it is sent more");
        std::thread::sleep(Duration::from_millis(20));
    }
    for peer in &peers[7..9] {
        assert!(peer.write(&vec![b'x'; MEGABYTE], true));
    }
    while read < 7_000_000 {
        let count = reader.stream.read(&mut space).expect("it is sent more");
        assert!(count > 0, "it was disconnected after {read} bytes");
        read += count;
    }
    assert!(clients(&server) < 11, "others were disconnected");
    drop(idlers);
}

/// A client with this address that has requested this many bytes, and does not read them.
fn stalled_as(server: &Server, client: &str, length: usize) -> WebSocket {
    let mut client = WebSocket::connect_with_field(server.address, client);
    set_socket_recv_buffer_size(&client.stream, 4_096).expect("a small buffer");
    client.send(Opcode::Text, format!("send {length}").as_bytes());
    client
}

/// Number of clients that have not taken all of their data.
fn waiting(app: &Talker) -> usize {
    let peers = app.peers.lock().unwrap();
    peers.iter().filter(|peer| peer.pending() > 0).count()
}

#[test]
fn an_address_whose_clients_leave_most_unread_gives_way_before_another_with_a_larger_share() {
    let limits = Config {
        remote_address: RemoteAddress::Field(b"x-client"[..].into()),
        ..with_total(TOTAL)
    };
    let (server, app) = serve(limits, 0);
    let mut good = stalled_as(&server, "X-Client: 10.0.0.9", 900_000);
    eventually("it waits", || waiting(&app) == 1);
    std::thread::sleep(Duration::from_millis(1_200));
    let attackers: Vec<WebSocket> = (0..120)
        .map(|_| stalled_as(&server, "X-Client: 10.0.0.3", 100_000))
        .collect();
    eventually("some are disconnected", || server.engine.stats().overflowed > 30);
    assert_eq!(good.receive(), text(&"y".repeat(900_000)));
    let disconnected = || server.engine.stats().overflowed as i64;
    eventually("each of them counts once", || clients(&server) + disconnected() == 121);
    drop(attackers);
}

#[test]
fn clients_whom_a_proxy_does_not_name_count_each_for_itself() {
    let limits = Config {
        trusted_proxies: TrustedProxies::parse(vec!["127.0.0.1".to_string()]).expect("an address"),
        ..with_total(TOTAL)
    };
    let (server, app) = serve(limits, 0);
    let _named = stalled_as(&server, "X-Forwarded-For: 10.0.0.9", 900_000);
    eventually("it waits", || waiting(&app) == 1);
    std::thread::sleep(Duration::from_millis(200));
    let others: Vec<WebSocket> = (0..71).map(|_| stalled_as(&server, "X-Other: 1", 100_000)).collect();
    eventually("nearly all is taken", || waiting(&app) == 72);
    let more: Vec<WebSocket> = (0..12).map(|_| stalled_as(&server, "X-Other: 1", 100_000)).collect();
    eventually("one is disconnected", || server.engine.stats().overflowed > 0);
    eventually("the others wait", || waiting(&app) == 83);
    assert_eq!(server.engine.stats().overflowed, 1, "the one with the largest share");
    drop((others, more));
}

/// Other clients use nearly the whole total, and read nothing. Then a client reads a large response, a part with each
/// call of `read`, until it is complete, while the others get more.
fn is_spared<C>(ask: impl Fn(&Server) -> C, mut read: impl FnMut(&mut C) -> usize) {
    let limits = Config {
        response_memory_bytes: LARGE + MEGABYTE,
        response_disk_total_bytes: 0,
        ..with_total(2 * TOTAL)
    };
    let (server, app) = serve(limits, 0);
    let idlers: Vec<WebSocket> = (0..14).map(|_| small_reader(&server)).collect();
    eventually("all are here", || app.peers.lock().unwrap().len() == 14);
    let peers = app.peers.lock().unwrap().clone();
    for peer in &peers[..8] {
        assert!(peer.write(&vec![b'x'; MEGABYTE], true));
    }
    std::thread::sleep(Duration::from_millis(1_200));
    let mut reader = ask(&server);
    let (mut sum, mut greeted) = (0, 8);
    while sum < LARGE {
        let count = read(&mut reader);
        assert!(count > 0, "it was disconnected after {sum} bytes");
        sum += count;
        if sum > 1_000_000 && greeted < peers.len() {
            assert!(peers[greeted].write(&vec![b'x'; MEGABYTE], true));
            greeted += 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(server.engine.stats().overflowed > 0, "others were disconnected");
    drop(idlers);
}

#[test]
fn a_client_of_http1_that_reads_is_spared_although_it_has_the_largest_share() {
    let ask = |server: &Server| {
        let mut client = server.connect();
        set_socket_recv_buffer_size(&client.stream, 65_536).expect("a buffer");
        client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        client
    };
    let mut space = vec![0; 50_000];
    is_spared(ask, move |client| client.stream.read(&mut space).unwrap_or(0));
}

#[test]
fn a_session_that_reads_is_spared_although_it_has_the_largest_share() {
    let ask = |server: &Server| {
        let mut client = FrameClient::connect(server.address);
        set_socket_recv_buffer_size(&client.socket, 65_536).expect("a buffer");
        let wide = [setting(INITIAL_WINDOW, 1 << 30), window_update(0, 1 << 30)].concat();
        client.send(&[wide, get(1, "/large")].concat());
        client
    };
    is_spared(ask, |client| {
        let mut read = 0;
        while read < 50_000 {
            let frame = client.find(|frame| [DATA, GOAWAY].contains(&frame.kind));
            assert_eq!(frame.kind, DATA, "it was disconnected");
            read += frame.payload.len();
            if frame.flags & END_STREAM != 0 {
                break;
            }
        }
        read
    });
}

#[test]
fn a_publication_that_many_clients_have_not_taken_counts_once() {
    let (server, _) = serve(with_total(TOTAL), 0);
    let idlers: Vec<WebSocket> = (0..60).map(|_| small_reader(&server)).collect();
    eventually("the subscriptions", || server.hub.stats().subscriptions == 60);
    let message = vec![b'm'; 400_000];
    for _ in 0..2 {
        server.hub.publish(b"all", &message, Scope::Process, &mut |wait| wait());
    }
    eventually("the delivery", || server.hub.stats().counted.delivered == 120);
    assert_others_are_served(&server);
    eventually("the reader is gone", || clients(&server) <= 60);
    assert_eq!((clients(&server), server.engine.stats().overflowed), (60, 0));
    drop(idlers);
}

#[test]
fn the_memory_of_clients_that_have_gone_is_returned_to_the_system() {
    static RETURNED: AtomicUsize = AtomicUsize::new(0);
    let limits = Config {
        trim_memory: || _ = RETURNED.fetch_add(1, SeqCst),
        ..with_total(64 * MEGABYTE)
    };
    let (server, app) = serve(limits, MEGABYTE);
    let idlers: Vec<WebSocket> = (0..30).map(|_| small_reader(&server)).collect();
    eventually("all are greeted", || app.peers.lock().unwrap().len() == 30);
    assert_eq!(RETURNED.load(SeqCst), 0);
    drop(idlers);
    eventually("the memory is returned", || RETURNED.load(SeqCst) > 0);
}

/// Time until a publication has reached this many clients with a window of `2^bits` bytes.
fn delivery_time(bits: Option<u8>) -> Duration {
    let limits = Config {
        deflate: Some(fairlead_wire::websocket::Context::PerMessage),
        deflate_min_bytes: 100,
        ..config()
    };
    let (server, _) = serve(limits, 0);
    let clients: Vec<WebSocket> = (0..60)
        .map(|_| WebSocket::connect_with_window(server.address, bits))
        .collect();
    eventually("the subscriptions", || server.hub.stats().subscriptions == 60);
    // Random digits compress to half their length in any window.
    let mut random = 1u32;
    let digits = std::iter::repeat_with(|| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (random >> 28) as u8
    });
    let message: Vec<u8> = digits.take(100_000).collect();
    let began = Instant::now();
    server.hub.publish(b"all", &message, Scope::Process, &mut |wait| wait());
    eventually("the delivery", || server.hub.stats().counted.delivered == 60);
    drop(clients);
    began.elapsed()
}

#[test]
fn clients_with_small_windows_do_not_delay_what_is_published() {
    let usual = (0..3).map(|_| delivery_time(None)).max().unwrap();
    let small = (0..3).map(|_| delivery_time(Some(9))).min().unwrap();
    assert!(
        small < usual * 6 + Duration::from_millis(30),
        "{small:?}, {usual:?} without"
    );
}

#[test]
fn a_message_that_is_dropped_does_not_spoil_those_that_refer_to_earlier_ones() {
    let limits = Config {
        deflate: Some(fairlead_wire::websocket::Context::Kept),
        deflate_min_bytes: 100,
        client_pending_bytes: 20_000,
        client_overflow: Overflow::Drop,
        ..config()
    };
    let (server, app) = serve(limits, 0);
    let mut client = WebSocket::connect_inflating(server.address);
    eventually("it has arrived", || app.peers.lock().unwrap().len() == 1);
    let peer = Arc::clone(&app.peers.lock().unwrap()[0]);
    let mut random = 1u32;
    let letters = std::iter::repeat_with(|| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (random >> 28) as u8
    });
    let letters: Vec<u8> = letters.take(20_000).collect();
    let message = |number: usize| {
        // Half of a message is equal to the message before it.
        let begin = number * 500 % 10_000;
        String::from_utf8(letters[begin..begin + 10_000].to_vec()).unwrap()
    };
    let mut sent = Vec::new();
    let mut number = 0;
    while server.engine.stats().dropped < 10 {
        if peer.write(message(number).as_bytes(), true) {
            sent.push(number);
        }
        number += 1;
    }
    let mut received = sent.iter().map(|number| (client.receive(), message(*number)));
    assert!(received.all(|(received, message)| received == text(&message)));
    assert!(peer.write(message(number).as_bytes(), true));
    assert_eq!(client.receive(), text(&message(number)));
}
