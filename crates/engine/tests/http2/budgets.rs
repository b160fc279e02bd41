//! Budgets of HTTP/2 connections: memory for requests and for unsent responses, and files. A connection above its
//! budget only delays itself. If many connections together use up a total, the largest ones are closed.

use crate::support::frames::*;
use crate::support::http2::{get as get_request, request, Http2Client};
use crate::support::*;
use fairlead_engine::{Config, Descriptors, Exchange, RequestTotals};
use rustix::net::sockopt::set_socket_send_buffer_size;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{mpsc, Arc, Mutex};
use std::time::Duration;

const REFUSED_STREAM: u32 = 7;

/// Less than a response that goes to the disk when memory is scarce.
const RESPONSE: usize = 50_000;

/// For all responses. An HTTP/2 connection may use an eighth of it.
const TOTAL: u64 = 8 << 20;

fn respond(exchange: &mut Exchange<'_>) {
    reply(exchange, &"x".repeat(RESPONSE));
}

/// A server with large responses, except for `/small`, that counts them.
fn server_with_responses(config: Config) -> (Server, Arc<AtomicUsize>) {
    let served: Arc<AtomicUsize> = Arc::default();
    let counter = Arc::clone(&served);
    let socket = listen();
    set_socket_send_buffer_size(&socket, 4_096).expect("a small buffer");
    let call = move |exchange: &mut Exchange<'_>| {
        if path(exchange) == "/small" {
            return reply(exchange, "small");
        }
        counter.fetch_add(1, SeqCst);
        respond(exchange);
    };
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        response_memory_total_bytes: TOTAL,
        ..config
    };
    (Server::on(&socket, config, None, Arc::new(call)), served)
}

/// A client with requests on this many streams, and closed windows for their bodies.
fn closed_windows(server: &Server, streams: u32) -> FrameClient {
    let mut client = FrameClient::connect(server.address);
    let requests: Vec<Vec<u8>> = (0..streams).map(|number| get(2 * number + 1, "/")).collect();
    client.send(&[setting(INITIAL_WINDOW, 0), requests.concat()].concat());
    client
}

/// Waits until the value has not changed for a while.
fn settled(mut value: impl FnMut() -> usize) -> usize {
    let (mut last, mut same) = (value(), 0);
    eventually("it settles", || {
        std::thread::sleep(Duration::from_millis(20));
        let now = value();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same >= 15
    });
    last
}

#[test]
fn a_session_whose_responses_wait_gets_no_turns_and_goes_on_when_they_are_taken() {
    const STREAMS: u32 = 90;
    let (server, served) = server_with_responses(config());
    let mut client = closed_windows(&server, STREAMS);
    client.ping();
    let count = settled(|| served.load(SeqCst));
    assert!(count * RESPONSE < 2 * TOTAL as usize / 8, "{count} have run");
    assert_eq!(server.connect().get("/small").text(), "small");
    assert_eq!(Http2Client::connect(server.address).get("/small").text(), "small");
    client.send(&[window_update(0, 1 << 30), setting(INITIAL_WINDOW, 1 << 30)].concat());
    let mut ended = 0;
    while ended < STREAMS {
        // A stream that has arrived late may have been refused.
        let frame = client.find(|frame| frame.kind == RST_STREAM || frame.kind == DATA);
        ended += u32::from(frame.kind == RST_STREAM || frame.flags & END_STREAM != 0);
    }
}

#[test]
fn new_streams_of_a_session_whose_responses_wait_are_refused() {
    let (server, served) = server_with_responses(config());
    let mut client = closed_windows(&server, 60);
    client.ping();
    settled(|| served.load(SeqCst));
    client.send(&get(201, "/small"));
    assert_eq!(client.find_of(RST_STREAM, 201).code(), REFUSED_STREAM);
    client.send(&[window_update(0, 1 << 30), setting(INITIAL_WINDOW, 1 << 30)].concat());
    // The client takes the queued data, so that there is room again.
    let is_served = (203..20_000).step_by(2).any(|stream| {
        client.send(&get(stream, "/small"));
        let end = client.find(|frame| frame.stream == stream && frame.kind != HEADERS);
        std::thread::sleep(Duration::from_millis(10));
        end.kind == DATA
    });
    assert!(is_served);
}

#[test]
fn a_session_is_not_ended_for_what_the_server_refuses() {
    let (server, served) = server_with_responses(config());
    let mut client = closed_windows(&server, 60);
    client.ping();
    settled(|| served.load(SeqCst));
    for stream in (201..).step_by(2).take(1_000) {
        client.send(&get(stream, "/small"));
        assert_eq!(client.find_of(RST_STREAM, stream).code(), REFUSED_STREAM);
    }
}

#[test]
fn a_large_response_that_waits_does_not_keep_a_session_from_others() {
    let server = Server::start(
        Config {
            response_memory_total_bytes: TOTAL,
            response_disk_total_bytes: 0,
            ..config()
        },
        |exchange| {
            let length = if path(exchange) == "/small" { 5 } else { 6 << 20 };
            reply(exchange, &"x".repeat(length));
        },
    );
    let mut client = closed_windows(&server, 1);
    client.find_of(HEADERS, 1);
    for stream in (3..23).step_by(2) {
        client.send(&[get(stream, "/small"), window_update(stream, 5)].concat());
        assert_eq!(client.find_of(DATA, stream).payload.len(), 5);
    }
}

#[test]
fn sessions_whose_responses_wait_have_no_more_than_the_total_together() {
    const SESSIONS: usize = 40;
    const STREAMS: u32 = 15;
    let (server, _) = server_with_responses(config());
    let mut good = closed_windows(&server, 1);
    good.find_of(HEADERS, 1);
    let mut clients: Vec<FrameClient> = (0..SESSIONS).map(|_| closed_windows(&server, STREAMS)).collect();
    let most = TOTAL as usize / (STREAMS as usize * RESPONSE);
    eventually("the others are disconnected", || {
        let disconnected = clients
            .iter_mut()
            .filter_map(|client| client.has_goaway().then_some(()));
        SESSIONS - disconnected.count() <= most + 1
    });
    let told = clients
        .iter_mut()
        .find_map(|client| client.has_goaway().then_some(client));
    assert_eq!(told.expect("some").goaway(), Some(ENHANCE_YOUR_CALM));
    assert_eq!(server.connect().get("/small").text(), "small");
    good.send(&window_update(1, 1 << 20));
    good.find(|frame| frame.kind == DATA && frame.flags & END_STREAM != 0);
}

#[test]
fn connections_whose_responses_wait_have_no_more_than_the_total_together() {
    const CLIENTS: usize = 300;
    let (server, served) = server_with_responses(config());
    let clients: Vec<Client> = (0..CLIENTS)
        .map(|_| {
            let mut client = server.connect();
            rustix::net::sockopt::set_socket_recv_buffer_size(&client.stream, 1_024).expect("a small buffer");
            // The first response fits in the buffers of the kernel.
            client.send(&"GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(3));
            client
        })
        .collect();
    eventually("all have run", || served.load(SeqCst) >= 2 * CLIENTS);
    let most = TOTAL as usize / RESPONSE;
    eventually("the others are disconnected", || {
        server.engine.stats().connections <= most as i64 + 1
    });
    assert_eq!(server.connect().get("/small").text(), "small");
    drop(clients);
}

/// A server with little memory for requests. Its only thread waits until it is released.
fn busy_server() -> (Server, mpsc::Sender<()>, Client) {
    let (release, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let config = Config {
        request_totals: RequestTotals::new(1 << 20, 1 << 30),
        ..config()
    };
    let server = Server::start(config, move |exchange| {
        if path(exchange) == "/hold" {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
        }
        reply(exchange, "ok");
    });
    let mut holder = server.connect();
    holder.send("GET /hold HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it runs", || server.engine.stats().busy_threads == 1);
    (server, release, holder)
}

/// A request with a head that is small on the wire, and large for the server: the table has a long field (RFC 7541
/// §2.3.2).
fn expanding(stream: u32, is_first: bool) -> Vec<u8> {
    let mut fields = block("GET", "/");
    if is_first {
        // With incremental indexing: the value is 3,000 bytes long.
        fields.extend_from_slice(&[0x40, 1, b'x', 0x7f, 0xb9, 0x16]);
        fields.extend_from_slice(&[b'y'; 3_000]);
    }
    fields.extend_from_slice(&[0x80 | 62; 4]);
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields)
}

fn expand(server: &Server) -> FrameClient {
    let mut client = FrameClient::connect(server.address);
    let requests = (0..90).map(|number| expanding(2 * number + 1, number == 0));
    client.send(&requests.collect::<Vec<_>>().concat());
    client
}

#[test]
fn a_client_whose_heads_expand_takes_its_share_of_the_memory_only() {
    let (server, release, _holder) = busy_server();
    let mut attacker = expand(&server);
    let refused = attacker.find(|frame| frame.kind == RST_STREAM);
    assert_eq!(refused.code(), REFUSED_STREAM);
    attacker.ping();
    assert!(server.totals.used().0 < 1 << 18, "{:?}", server.totals.used());
    release.send(()).expect("it waits");
    eventually("everything is released", || server.totals.used().0 == 0);
}

#[test]
fn small_heads_pass_whatever_others_have_taken() {
    let (server, release, _holder) = busy_server();
    let mut attackers: Vec<FrameClient> = (0..30).map(|_| expand(&server)).collect();
    attackers.iter_mut().for_each(|client| {
        client.find(|frame| frame.kind == RST_STREAM || frame.kind == GOAWAY);
    });
    let mut good = Http2Client::connect(server.address);
    let asked: Vec<_> = (0..40).map(|_| good.ask(get_request("/"), false)).collect();
    good.wait("all are there", |_| {
        let is_there = server.engine.stats().queued > 0;
        if is_there {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    });
    assert!(server.totals.used().0 < 3 << 19, "{:?}", server.totals.used());
    release.send(()).expect("it waits");
    for asked in asked {
        assert_eq!(good.response(asked).expect("a response").status, 200);
    }
    drop(attackers);
    eventually("everything is released", || server.totals.used().0 == 0);
}

/// A server with 24 files for bodies; an HTTP/2 connection may use 3 of them.
fn server_with_files() -> Server {
    server_with(32)
}

/// A server with this many files for clients, three quarters of them for bodies.
fn server_with(files: usize) -> Server {
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        descriptors: Descriptors::with(1_000, files),
        ..config()
    };
    Server::start(config, |exchange| {
        let body = exchange.take_body();
        reply(exchange, &body.len().to_string());
    })
}

/// A client that has begun this many uploads and sends no more of them.
fn stalled(server: &Server, streams: u32) -> FrameClient {
    let mut client = FrameClient::connect(server.address);
    for number in 0..streams {
        let stream = 2 * number + 1;
        client.send(&[post(stream, "/"), frame(DATA, 0, stream, &[b'x'; 6_000])].concat());
    }
    client.ping();
    client
}

fn upload(server: &Server) {
    let mut client = server.connect();
    let body = "x".repeat(100_000);
    client.send(&format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n{body}"
    ));
    assert_eq!(client.response().text(), "100000");
}

#[test]
fn stalled_uploads_of_a_few_sessions_leave_files_to_others() {
    let server = server_with_files();
    let clients: Vec<FrameClient> = (0..4).map(|_| stalled(&server, 30)).collect();
    eventually("they have what they may have", || server.descriptors.used().1 == 12);
    upload(&server);
    drop(clients);
    eventually("everything is released", || server.descriptors.used().1 == 0);
}

#[test]
fn the_sessions_with_the_most_files_give_way_to_an_upload_that_waits() {
    let server = server_with_files();
    let clients: Vec<FrameClient> = (0..10).map(|_| stalled(&server, 5)).collect();
    eventually("nothing is left", || server.descriptors.used().1 == 24);
    upload(&server);
    drop(clients);
    eventually("everything is released", || server.descriptors.used().1 == 0);
}

#[test]
fn sessions_of_one_address_with_few_files_each_give_way_if_they_have_most_of_them_together() {
    let server = server_with(160);
    let clients: Vec<FrameClient> = (0..40).map(|_| stalled(&server, 3)).collect();
    eventually("nothing is left", || server.descriptors.used().1 == 120);
    upload(&server);
    drop(clients);
    eventually("everything is released", || server.descriptors.used().1 == 0);
}

#[test]
fn a_session_with_few_files_does_not_give_way_for_those_of_http1() {
    let server = server_with(160);
    let mut session = stalled(&server, 3);
    eventually("it has its files", || server.descriptors.used().1 == 3);
    let mut others: Vec<Client> = (0..130).map(|_| server.connect()).collect();
    for other in &mut others {
        other.send(&format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 9000\r\n\r\n{}",
            "x".repeat(6_000)
        ));
    }
    eventually("nothing is left", || server.descriptors.used().1 == 120);
    let mut waiting = server.connect();
    waiting.send(&format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n{}",
        "x".repeat(50_000)
    ));
    // Longer than an upload waits before another client has to give up a file.
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(100));
        session.ping();
    }
    let rest = [b'x'; 100];
    session.send(&frame(DATA, END_STREAM, 1, &rest));
    assert_eq!(session.find_of(DATA, 1).payload, b"6100");
}

#[test]
fn responses_of_a_session_that_wait_in_files_leave_files_to_others() {
    let config = Config {
        min_threads: 2,
        max_threads: 2,
        descriptors: Descriptors::with(1_000, 32),
        ..config()
    };
    let server = Server::start(config, |exchange| match exchange.take_body().len() {
        0 => reply(exchange, &"x".repeat(300_000)),
        length => reply(exchange, &length.to_string()),
    });
    let clients: Vec<FrameClient> = (0..2).map(|_| closed_windows(&server, 90)).collect();
    settled(|| server.descriptors.used().1);
    assert!(server.descriptors.used().1 <= 16, "{:?}", server.descriptors.used());
    upload(&server);
    drop(clients);
    eventually("everything is released", || server.descriptors.used().1 == 0);
}

#[test]
fn a_body_that_does_not_arrive_takes_no_memory() {
    let server = Server::start(config(), |exchange| reply(exchange, "ok"));
    let mut clients: Vec<Client> = (0..20).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4000\r\n\r\nx");
    }
    let mut session = FrameClient::connect(server.address);
    for stream in (1..41).step_by(2) {
        session.send(&[post(stream, "/"), frame(DATA, 0, stream, b"x")].concat());
    }
    session.ping();
    let used = settled(|| server.totals.used().0 as usize);
    assert!(used < 20 * 2_500, "{used}");
}

#[test]
fn uploads_of_a_session_that_has_its_files_wait_for_each_other() {
    let server = server_with_files();
    let mut client = Http2Client::connect(server.address);
    let mut uploads: Vec<_> = (0..12).map(|_| client.ask(request("POST", "/"), true)).collect();
    for upload in &mut uploads {
        client
            .upload(&mut upload.body, &[b'x'; 5_000], false)
            .expect("a window");
    }
    client.wait("as many files as it may have", |_| match server.descriptors.used().1 {
        3 => std::task::Poll::Ready(()),
        _ => std::task::Poll::Pending,
    });
    for upload in &mut uploads {
        client.upload(&mut upload.body, &[b'x'; 5_000], true).expect("a window");
    }
    for upload in uploads {
        assert_eq!(client.response(upload).expect("a response").text(), "10000");
    }
    eventually("everything is released", || server.descriptors.used().1 == 0);
}

/// An upload of this many bytes in parts that fit in the windows.
fn upload_part(client: &mut FrameClient, path: &str, length: usize, ends: bool) {
    client.send(&post(1, path));
    for begin in (0..length).step_by(16_000) {
        let part = vec![b'x'; 16_000.min(length - begin)];
        let is_last = begin + 16_000 >= length;
        client.send(&frame(DATA, if is_last && ends { END_STREAM } else { 0 }, 1, &part));
        client.ping();
    }
}

#[test]
fn sessions_that_have_ended_while_their_requests_run_protect_no_others() {
    const ENDED: usize = 8;
    let is_held = Arc::new(AtomicBool::new(true));
    let hold = Arc::clone(&is_held);
    let config = Config {
        min_threads: ENDED + 1,
        max_threads: ENDED + 1,
        request_totals: RequestTotals::new(1_560_000, 1 << 30),
        body_memory_bytes: 120_000,
        head_max_bytes: 65_536,
        ..config()
    };
    let server = Server::start(config, move |exchange| {
        if path(exchange) == "/hold" {
            eventually("permission to continue", || !hold.load(SeqCst));
        }
        reply(exchange, "ok");
    });
    let mut large = FrameClient::connect(server.address);
    large.ping();
    for number in 1..=ENDED {
        let mut client = FrameClient::connect(server.address);
        upload_part(&mut client, "/hold", 115_000, true);
        eventually("it runs", || server.engine.stats().busy_threads == number as i64);
    }
    eventually("the sessions have ended", || server.engine.stats().connections == 1);
    upload_part(&mut large, "/", 100_000, false);
    assert!(server.totals.used().0 > 1_000_000, "{:?}", server.totals.used());
    // Bodies leave a part of the memory to heads. As many heads as fit use it.
    let mut heads: Vec<Client> = (0..5).map(|_| server.connect()).collect();
    for head in &mut heads {
        head.send(&format!(
            "GET / HTTP/1.1\r\nHost: test\r\nX-Long: {}",
            "x".repeat(40_000)
        ));
        settled(|| server.totals.used().0 as usize);
    }
    let mut good = Http2Client::connect(server.address);
    let mut long = get_request("/");
    let value = http::HeaderValue::from_bytes(&[b'y'; 60_000]).expect("a value");
    long.headers_mut().insert("x-long", value);
    let asked = good.ask(long, false);
    assert_eq!(good.response(asked).expect("a response").status, 200);
    assert_eq!(large.goaway(), Some(ENHANCE_YOUR_CALM));
    is_held.store(false, SeqCst);
    drop(heads);
    eventually("everything is released", || server.totals.used().0 == 0);
}
