//! Responses that are being sent when their worker retires: the next worker goes on with the byte that the client gets
//! next. Each client gets all bytes once, in order.

use super::{idle, settled, Workers};
use crate::support::tls::{self, TlsStream};
use crate::support::*;
use fairlead_engine::{Config, Exchange, FilesConfig};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, LazyLock};
use tempfile::TempDir;

/// More than the kernel buffers.
const LENGTH: usize = 20_000_000;

/// Bytes that a client reads between two restarts.
const PIECE: usize = 1_000_000;

/// Bytes without repetitions.
static CONTENT: LazyLock<Arc<Vec<u8>>> = LazyLock::new(|| {
    let (mut bytes, mut state) = (vec![0; LENGTH], 0x9e37_79b9_7f4a_7c15_u64);
    for eight in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        eight.copy_from_slice(&state.to_le_bytes());
    }
    Arc::new(bytes)
});

/// Workers that serve the same bytes as a public file, as a file that the app names, and from memory.
struct Site {
    content: Arc<Vec<u8>>,
    folder: TempDir,
    has_tls: bool,
}

impl Site {
    fn new(has_tls: bool) -> Site {
        let (content, folder) = (Arc::clone(&CONTENT), tempfile::tempdir().expect("a folder"));
        std::fs::write(folder.path().join("large"), &content[..]).expect("a file");
        Site {
            content,
            folder,
            has_tls,
        }
    }

    fn config(&self) -> Config {
        let path = self.folder.path().to_path_buf();
        let files = FilesConfig {
            public_dir: Some(path.clone()),
            file_cache_bytes: 1 << 20,
            sendfile_root: vec![(Some("/internal/".into()), path)],
            ..FilesConfig::default()
        };
        Config { files, ..settled() }
    }

    /// The worker in this slot, with socket buffers that are small, but not slow.
    fn start(&self, workers: &Workers, slot: usize) -> Server {
        self.start_with(workers, slot, self.config())
    }

    fn start_with(&self, workers: &Workers, slot: usize, config: Config) -> Server {
        let socket = listen();
        set_socket_send_buffer_size(&socket, 262_144).expect("a buffer");
        let content = Arc::clone(&self.content);
        let call = move |exchange: &mut Exchange<'_>| match &*path(exchange) {
            "/named" => {
                exchange.start(200);
                exchange
                    .field(b"x-accel-redirect", b"/internal/large")
                    .expect("a field");
                let mut search = exchange.search_named().expect("a file");
                search.run();
                assert!(exchange.send_found(search));
            }
            "/spooled" => {
                exchange.start(200);
                exchange.end_head(Some(content.len() as u64));
                assert_eq!(exchange.write(&content), Ok(content.len()));
            }
            _ => reply(exchange, &format!("worker {slot}")),
        };
        let shared = Some((Arc::clone(&workers.queues), slot));
        match self.has_tls {
            true => Server::with_tls(&socket, config, shared, Arc::new(call)),
            false => Server::on(&socket, config, shared, Arc::new(call)),
        }
    }
}

/// A connection with a small buffer.
fn narrow(server: &Server) -> TcpStream {
    let stream = server.connect().stream;
    set_socket_recv_buffer_size(&stream, 262_144).expect("a buffer");
    stream
}

fn narrow_with_tls(server: &Server, version: &'static rustls::SupportedProtocolVersion) -> TlsStream {
    let stream = tls::stream(server.address, &tls::client(&[version]));
    set_socket_recv_buffer_size(&stream.sock, 262_144).expect("a buffer");
    stream
}

/// Reads the head of a response.
fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.extend(byte);
    }
    String::from_utf8(head).expect("text")
}

/// Requests `path`, with a field, and another response behind it. Replaces the worker three times meanwhile. The
/// last worker responds to the second request.
fn through_restarts(
    site: &Site,
    connect: impl Fn(&Server) -> Box<dyn Stream>,
    path: &str,
    field: &str,
    expected: &[u8],
) {
    let workers = Workers::new();
    let mut worker = site.start(&workers, 0);
    let mut stream = connect(&worker);
    let requests = format!("GET {path} HTTP/1.1\r\nHost: test\r\n{field}\r\nGET /who HTTP/1.1\r\nHost: test\r\n\r\n");
    stream.write_all(requests.as_bytes()).expect("an open socket");
    let head_of_large = head(&mut stream);
    assert!(
        head_of_large.contains(&format!("content-length: {}\r\n", expected.len())),
        "{head_of_large}"
    );
    let mut body = vec![0; PIECE];
    stream.read_exact(&mut body).expect("the response continues");
    for slot in 1..=3 {
        let next = site.start(&workers, slot);
        worker.engine.drain_and_migrate();
        assert!(
            worker.engine.wait(Some(PATIENCE)),
            "it ends, although the client reads slowly"
        );
        eventually("the response goes on elsewhere", || next.engine.stats().taken_over == 1);
        nothing_is_left(&worker);
        assert!(
            next.descriptors.used().1 <= 1,
            "one file: {:?}",
            next.descriptors.used()
        );
        let mut more = vec![0; PIECE];
        stream.read_exact(&mut more).expect("the response continues");
        body.extend(more);
        worker = next;
    }
    let mut rest = vec![0; expected.len() - body.len()];
    stream.read_exact(&mut rest).expect("the rest of the response");
    body.extend(rest);
    assert!(body == expected, "{path} {field}");
    head(&mut stream);
    let mut text = [0; 8];
    stream.read_exact(&mut text).expect("the next response");
    assert_eq!(&text, b"worker 3", "{path} {field}");
    nothing_is_left(&worker);
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The worker keeps no file, and neither memory nor space for responses.
fn nothing_is_left(worker: &Server) {
    eventually("nothing is left", || {
        let stats = worker.engine.stats();
        (
            worker.descriptors.used().1,
            stats.response_memory_bytes,
            stats.response_disk_bytes,
        ) == (0, 0, 0)
    });
}

#[test]
fn files_and_spooled_responses_go_on_through_restarts() {
    let site = Site::new(false);
    let whole = &site.content[..];
    for (path, field, expected) in [
        ("/large", "", whole),
        ("/named", "", whole),
        ("/spooled", "", whole),
        ("/large", "Range: bytes=7-15000000\r\n", &whole[7..=15_000_000]),
    ] {
        through_restarts(&site, |server| Box::new(narrow(server)), path, field, expected);
    }
}

#[test]
fn with_tls_they_go_on_with_the_same_keys() {
    let site = Site::new(true);
    let whole = &site.content[..];
    for (version, path, field, expected) in [
        (&rustls::version::TLS13, "/large", "", whole),
        (
            &rustls::version::TLS12,
            "/named",
            "Range: bytes=-12000000\r\n",
            &whole[LENGTH - 12_000_000..],
        ),
        (&rustls::version::TLS13, "/spooled", "", whole),
        (&rustls::version::TLS12, "/spooled", "", whole),
    ] {
        let connect = |server: &Server| -> Box<dyn Stream> { Box::new(narrow_with_tls(server, version)) };
        through_restarts(&site, connect, path, field, expected);
    }
}

/// A worker with a client of the large file that has read nothing but the head.
fn begun(site: &Site, worker: &Server, field: &str) -> TcpStream {
    let mut stream = narrow(worker);
    let request = format!("GET /large HTTP/1.1\r\nHost: test\r\n{field}\r\n");
    stream.write_all(request.as_bytes()).expect("an open socket");
    assert!(head(&mut stream).contains(&format!("content-length: {}\r\n", site.content.len())));
    stream
}

fn rest_of(mut stream: TcpStream) -> Vec<u8> {
    let mut body = Vec::new();
    stream.read_to_end(&mut body).expect("the rest of the response");
    body
}

#[test]
fn many_responses_go_on_elsewhere_with_as_many_descriptors() {
    let (site, workers) = (Site::new(false), Workers::new());
    let (next, retiring) = (site.start(&workers, 1), site.start(&workers, 0));
    let begin = |_| begun(&site, &retiring, "Connection: close\r\n");
    let streams: Vec<TcpStream> = (0..10).map(begin).collect();
    let descriptors = retiring.descriptors.used();
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    eventually("all go on elsewhere", || next.engine.stats().taken_over == 10);
    assert_eq!(next.descriptors.used(), descriptors);
    assert!(rest_of(streams.into_iter().next().expect("one")) == *site.content);
    nothing_is_left(&retiring);
    eventually("the others have left", || next.engine.stats().connections == 0);
    nothing_is_left(&next);
}

#[test]
fn several_ranges_go_on_with_the_bytes_between_them() {
    let (site, workers) = (Site::new(false), Workers::new());
    let (next, retiring) = (site.start(&workers, 1), site.start(&workers, 0));
    let request =
        "GET /large HTTP/1.1\r\nHost: test\r\nConnection: close\r\nRange: bytes=0-9000000,9000100-19000000\r\n\r\n";
    let mut stream = narrow(&retiring);
    stream.write_all(request.as_bytes()).expect("an open socket");
    head(&mut stream);
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    let body = rest_of(stream);
    assert_eq!(next.engine.stats().taken_over, 1);
    for part in [&site.content[..=9_000_000], &site.content[9_000_100..=19_000_000]] {
        let at = memchr::memmem::find(&body, &part[..64]).expect("the part");
        assert!(body[at..at + part.len()] == *part);
    }
}

#[test]
fn a_response_stays_where_it_is_as_long_as_no_worker_has_a_place() {
    let (site, workers) = (Site::new(false), Workers::new());
    let small = Config {
        max_connections: 1,
        ..site.config()
    };
    let full = site.start_with(&workers, 1, small.clone());
    let guest = idle(&full, 1);
    let retiring = site.start_with(&workers, 0, small);
    let mut stream = begun(&site, &retiring, "");
    retiring.engine.drain_and_migrate();
    let mut body = vec![0; PIECE];
    stream.read_exact(&mut body).expect("the response continues");
    assert_eq!(
        (full.engine.stats().taken_over, retiring.engine.stats().connections),
        (0, 1)
    );
    drop(guest);
    eventually("it goes on elsewhere", || full.engine.stats().taken_over == 1);
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    let mut rest = vec![0; LENGTH - PIECE];
    stream.read_exact(&mut rest).expect("the rest of the response");
    body.extend(rest);
    assert!(body == *site.content);
}

/// The kernel keeps the queue.
#[test]
fn a_response_under_way_waits_for_a_worker_that_begins_later() {
    let (site, workers) = (Site::new(false), Workers::new());
    let retiring = site.start(&workers, 0);
    let stream = begun(&site, &retiring, "Connection: close\r\n");
    let other = begun(&site, &retiring, "");
    // A serving worker that has hung.
    workers.scoreboard.slot(1).serving.store(1, SeqCst);
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    drop(retiring);
    assert_eq!(workers.scoreboard.migrating(), 2);
    workers.scoreboard.slot(1).reset();
    drop(other);
    let next = site.start(&workers, 2);
    assert!(rest_of(stream) == *site.content);
    nothing_is_left(&next);
    assert_eq!(workers.scoreboard.migrating(), 0);
}

#[test]
fn a_response_of_a_removed_address_is_completed_and_ends_its_connection() {
    let (mut site, workers) = (Site::new(true), Workers::new());
    let next = site.start(&workers, 1);
    site.has_tls = false;
    let retiring = site.start(&workers, 0);
    let stream = begun(&site, &retiring, "");
    retiring.engine.drain_and_migrate();
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
    assert!(rest_of(stream) == *site.content);
    assert_eq!(next.engine.stats().taken_over, 1);
}

#[test]
fn more_bytes_than_a_message_should_have_are_sent_first() {
    let (site, workers) = (Site::new(false), Workers::new());
    let roomy = || Config {
        response_memory_bytes: LENGTH,
        ..site.config()
    };
    let next = site.start_with(&workers, 1, roomy());
    let retiring = site.start_with(&workers, 0, roomy());
    let mut stream = narrow(&retiring);
    stream
        .write_all(b"GET /spooled HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
        .expect("an open socket");
    head(&mut stream);
    retiring.engine.drain_and_migrate();
    let mut body = vec![0; LENGTH - 4_000_000];
    stream.read_exact(&mut body).expect("the response continues");
    assert_eq!(next.engine.stats().taken_over, 0);
    body.extend(rest_of(stream));
    assert!(body == *site.content);
    assert_eq!(next.engine.stats().taken_over, 1);
    assert!(retiring.engine.wait(Some(PATIENCE)), "it ends");
}
