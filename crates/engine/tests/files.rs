//! Files over real sockets, for clients that are slow, greedy, or end at the wrong moment.

mod support;

use fairlead_engine::{Config, FilesConfig};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustix::net::{connect, socket, AddressFamily, SocketType};
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use support::*;
use tempfile::TempDir;

const LARGE: usize = 3_000_000;

/// Bytes without repetitions.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    })
    .flatten()
    .take(length)
    .collect()
}

fn folder(files: &[(&str, &[u8])]) -> (TempDir, Config) {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, content) in files {
        fs::write(folder.path().join(name), content).expect("a file");
    }
    let files = FilesConfig {
        public_dir: Some(folder.path().to_path_buf()),
        file_cache_bytes: 1 << 20,
        ..FilesConfig::default()
    };
    (folder, Config { files, ..config() })
}

/// A server with small socket buffers.
fn narrow_server(config: Config) -> Server {
    let socket = listen();
    set_socket_send_buffer_size(&socket, 8_192).expect("a small buffer");
    Server::on(&socket, config, None, Arc::new(|exchange| reply(exchange, "app")))
}

/// A client with a small socket buffer.
fn narrow_client(server: &Server) -> Client {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    set_socket_recv_buffer_size(&socket, 4_096).expect("a small buffer");
    connect(&socket, &server.address).expect("a connection");
    let mut client = server.connect();
    client.stream = socket.into();
    client.stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    client
}

fn body(response: &[u8]) -> &[u8] {
    let end = response
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head");
    &response[end + 4..]
}

/// Reads a large response; [`Client::response`] is for short ones.
fn read_large(client: &mut Client, length: usize) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.stream.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    let mut body = vec![0; length];
    client.stream.read_exact(&mut body).expect("a body");
    body
}

#[test]
fn a_large_error_page_for_a_refused_request_arrives_whole() {
    let page = noise(60_000);
    let (_folder, config) = folder(&[("400.html", &page)]);
    let server = narrow_server(config);
    let mut client = narrow_client(&server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert!(body(&client.rest()) == page);
}

#[test]
fn a_request_behind_the_last_answer_does_not_cost_the_end_of_it() {
    let content = noise(LARGE);
    let (_folder, config) = folder(&[("large", &content)]);
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let mut client = narrow_client(&server);
    client.send("GET /large HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let mut first = [0; 64];
    client.stream.read_exact(&mut first).expect("the response begins");
    client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
    // The server is done when the kernel has the rest; the client reads it only then.
    let mut start = vec![0; LARGE / 8];
    client.stream.read_exact(&mut start).expect("the response continues");
    let mut response = [first.to_vec(), start].concat();
    response.extend(client.rest());
    assert_eq!(body(&response).len(), LARGE);
}

#[test]
fn a_fifo_is_not_opened() {
    let (folder, config) = folder(&[]);
    let fifo = folder.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a FIFO");
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let (opened, is_open) = channel();
    let writer = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            // Returns as soon as the other end is opened for reading.
            let file = OpenOptions::new().write(true).open(fifo);
            opened.send(file.is_ok()).expect("the test waits");
        }
    });
    assert_eq!(server.connect().get("/fifo").text(), "app");
    assert_eq!(server.connect().get("/fifo/").text(), "app");
    assert!(
        is_open.recv_timeout(Duration::from_millis(100)).is_err(),
        "it was opened"
    );
    let _reader = OpenOptions::new().read(true).open(&fifo).expect("the FIFO");
    assert_eq!(is_open.recv_timeout(PATIENCE), Ok(true));
    writer.join().expect("the writer ends");
}

#[test]
fn what_is_being_sent_when_draining_begins_arrives_whole() {
    let content = noise(400_000);
    let (_folder, config) = folder(&[("large", &content)]);
    let server = narrow_server(config);
    let mut clients: Vec<Client> = (0..4).map(|_| narrow_client(&server)).collect();
    for client in &mut clients {
        client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        client.stream.peek(&mut [0]).expect("the response begins");
    }
    server.engine.drain();
    for client in &mut clients {
        assert!(body(&client.rest()) == content);
    }
    assert!(server.engine.wait(Some(PATIENCE)));
    assert_eq!(server.engine.stats().connections, 0);
}

#[test]
fn what_is_being_sent_when_the_engine_stops_is_let_go() {
    let content = noise(LARGE);
    let (_folder, config) = folder(&[("large", &content)]);
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let mut clients: Vec<Client> = (0..32).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    clients[0].stream.peek(&mut [0]).expect("a response begins");
    server.engine.stop();
    eventually("all connections are gone", || server.engine.stats().connections == 0);
    for client in &mut clients {
        client.rest();
    }
}

#[test]
fn one_client_with_many_requests_leaves_others_their_turn() {
    let content = noise(LARGE);
    let (_folder, config) = folder(&[("large", &content), ("small", b"small")]);
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let mut greedy = server.connect();
    let requests = "GET /large HTTP/1.1\r\nHost: test\r\n\r\n".repeat(1_000);
    greedy.send(&requests);
    let reader = std::thread::spawn(move || {
        let is_right = (0..20).all(|_| read_large(&mut greedy, LARGE).len() == LARGE);
        (greedy, is_right)
    });
    let mut modest = server.connect();
    for _ in 0..50 {
        assert_eq!(modest.get("/small").text(), "small");
        assert_eq!(modest.get("/app").text(), "app");
    }
    modest.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
    assert!(read_large(&mut modest, LARGE) == content);
    assert!(reader.join().expect("the client reads").1);
}

#[test]
fn files_and_answers_of_the_app_keep_their_order_in_a_pipeline() {
    let large = noise(200_000);
    let (_folder, config) = folder(&[("large", &large), ("small", b"small")]);
    let server = Server::start(config, |exchange| {
        let text = path(exchange);
        reply(exchange, &text);
    });
    let mut client = narrow_client(&server);
    let paths: Vec<String> = (0..120)
        .map(|number| match number % 5 {
            0 => "/large".into(),
            1 | 3 => "/small".into(),
            _ => format!("/{number}"),
        })
        .collect();
    let requests = paths
        .iter()
        .map(|path| format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client.send(&requests.collect::<String>());
    for path in &paths {
        let response = client.response();
        match &path[..] {
            "/large" => assert!(response.body == large),
            "/small" => assert_eq!(response.text(), "small"),
            path => assert_eq!(response.text(), path),
        }
    }
}

#[test]
fn small_files_and_pages_need_no_room_for_answers() {
    let (content, page) = (noise(60_000), noise(50_000));
    let (_folder, config) = folder(&[("small", &content), ("404.html", &page)]);
    let config = Config {
        response_memory_bytes: 4_096,
        response_disk_bytes: 0,
        ..config
    };
    let socket = listen();
    set_socket_send_buffer_size(&socket, 8_192).expect("a small buffer");
    let server = Server::on(
        &socket,
        config,
        None,
        Arc::new(|exchange| exchange.respond_plainly(404)),
    );
    let mut client = narrow_client(&server);
    assert!(client.get("/small").body == content);
    assert!(client.get("/missing").body == page);
    client.send("GET /small HTTP/1.1\r\nHost: test\r\nRange: bytes=0-9,100-49999\r\n\r\n");
    assert!(client.response().body.len() > 49_910);
}

#[test]
fn nothing_was_modified_in_the_future() {
    let (folder, config) = folder(&[("small", b"small")]);
    let file = fs::File::open(folder.path().join("small")).expect("the file");
    file.set_modified(SystemTime::now() + Duration::from_secs(86_400))
        .expect("a time");
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let head = server.connect().get("/small").head;
    let date = |name: &str| {
        let value = head.lines().find_map(|line| line.strip_prefix(name)).expect("a date");
        httpdate::parse_http_date(value).expect("a date")
    };
    assert!(date("last-modified: ") <= date("date: "), "{head}");
}

#[test]
fn a_client_that_takes_nothing_is_let_go_and_a_slow_one_is_not() {
    let content = noise(LARGE);
    let (_folder, config) = folder(&[("large", &content)]);
    let config = Config {
        write_timeout: Duration::from_secs(1),
        ..config
    };
    let server = narrow_server(config);
    let mut slow = narrow_client(&server);
    let mut silent = narrow_client(&server);
    for client in [&mut slow, &mut silent] {
        client.send("GET /large HTTP/1.1\r\nHost: test\r\n\r\n");
        client.stream.peek(&mut [0]).expect("the response begins");
    }
    // So few bytes at a time that the socket is never reported writable within the timeout.
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        slow.stream.read_exact(&mut [0; 1_024]).expect("the response continues");
        std::thread::sleep(Duration::from_millis(50));
    }
    eventually("the silent client is gone", || server.engine.stats().connections == 1);
    slow.stream.read_exact(&mut [0; 100_000]).expect("more bytes arrive");
}

#[test]
fn a_challenge_is_answered_while_its_answer_is_there_and_otherwise_left_to_others() {
    const PATH: &str = "/.well-known/acme-challenge/token";
    let (_folder, config) = folder(&[("page", b"a file")]);
    let answers = tempfile::tempdir().expect("a folder");
    fs::create_dir(answers.path().join("http-01")).expect("a folder");
    let acme_challenges = Some(answers.path().to_path_buf());
    let config = Config {
        acme_challenges,
        ..config
    };
    let server = Server::start(config, |exchange| reply(exchange, "app"));
    let mut client = server.connect();
    assert_eq!("app", client.get(PATH).text());
    fs::write(answers.path().join("http-01/token"), "token.thumbprint").expect("a file");
    assert_eq!("token.thumbprint", client.get(PATH).text());
    assert_eq!("a file", client.get("/page").text());
    client.send("POST /.well-known/acme-challenge/token HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx");
    assert_eq!("app", client.response().text());
}
