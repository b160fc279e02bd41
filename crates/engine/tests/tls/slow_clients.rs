//! Clients that read a relayed response slowly, or not at all. Their own worker measures them; the other worker waits
//! for it.

use crate::support::tls::TlsStream;
use crate::support::*;
use crate::workers::Workers;
use fairlead_engine::{Config, Exchange};
use std::io::Read;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// More than the kernel buffers for a client that reads nothing.
const LONG: usize = 30_000_000;

fn long_response(exchange: &mut Exchange<'_>) -> bool {
    exchange.start(200);
    exchange.end_head(Some(LONG as u64));
    let bytes = vec![b'x'; LONG];
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let Ok(taken) = exchange.write(rest) else { return false };
        rest = &rest[taken..];
        if !rest.is_empty() && exchange.wait_for_client().is_err() {
            return false;
        }
    }
    true
}

fn ask(client: &mut Client<TlsStream>) {
    client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
}

/// Length of the rest of the response, and true if it ended properly.
fn rest(client: &mut Client<TlsStream>) -> (usize, bool) {
    let mut bytes = Vec::new();
    let end = client.stream.read_to_end(&mut bytes);
    (bytes.len(), end.is_ok())
}

#[test]
fn a_client_that_takes_nothing_is_given_up_by_its_own_worker() {
    let (ended, has_ended) = mpsc::channel();
    let settings = |config: &mut Config| config.write_timeout = Duration::from_millis(300);
    let workers = Workers::with(settings, move |exchange| _ = ended.send(long_response(exchange)));
    let mut client = workers.connect();
    ask(&mut client);
    assert!(
        !has_ended.recv_timeout(PATIENCE).expect("it ends"),
        "the client has not taken it"
    );
    eventually("nothing is left", || {
        (
            workers.busy.engine.stats().connections,
            workers.free.engine.stats().connections,
        ) == (1, 0)
    });
    let (length, is_proper) = rest(&mut client);
    assert!(length < LONG && !is_proper, "{length}");
}

#[test]
fn a_client_that_keeps_the_minimum_rate_gets_all_of_a_response_that_is_on_the_disk() {
    let settings = |config: &mut Config| {
        config.write_timeout = Duration::from_millis(300);
        config.write_min_rate = 1;
        config.response_disk_bytes = 1 << 30;
    };
    let workers = Workers::with(settings, |exchange| _ = long_response(exchange));
    let mut client = workers.connect();
    ask(&mut client);
    // The client reads some bytes in each 300 ms, but stays behind the other worker's data for longer than that.
    let (mut taken, began) = (0, Instant::now());
    while began.elapsed() < Duration::from_millis(1_500) {
        let mut piece = vec![0; 50_000];
        client.stream.read_exact(&mut piece).expect("it continues");
        taken += piece.len();
        std::thread::sleep(Duration::from_millis(20));
    }
    let (length, is_proper) = rest(&mut client);
    assert!(taken + length > LONG && is_proper, "{taken} and {length}");
}

/// A connection with a client and a kernel buffer that take about one record at a time.
fn connect_narrow(listener: &std::net::TcpListener) -> TlsStream {
    use rustix::net::{socket, sockopt, AddressFamily, SocketType};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&socket, 16_384).expect("a socket");
    let address = listener.local_addr().expect("an address");
    rustix::net::connect(&socket, &address).expect("a connection");
    let socket = std::net::TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    let mut tls = crate::support::tls::stream(address, &crate::support::tls::client(&[&rustls::version::TLS13]));
    tls.sock = socket;
    tls
}

#[test]
fn a_client_that_keeps_the_minimum_rate_may_take_long_for_what_tls_has_encrypted() {
    let mut config = config();
    config.write_timeout = Duration::from_millis(1_200);
    config.write_min_rate = 1;
    let socket = listen();
    rustix::net::sockopt::set_socket_send_buffer_size(&socket, 16_384).expect("a socket");
    let server = crate::workers::Worker::with_tls(
        &socket,
        config,
        None,
        std::sync::Arc::new(|exchange: &mut Exchange<'_>| {
            reply(exchange, &"x".repeat(200_000));
        }),
    );
    let mut client = Client::over(connect_narrow(&socket));
    ask(&mut client);
    // A record within the timeout, but not the four that are encrypted at a time.
    let mut taken = 0;
    while taken < 110_000 {
        let mut piece = vec![0; 16_384];
        client.stream.read_exact(&mut piece).expect("it continues");
        taken += piece.len();
        std::thread::sleep(Duration::from_millis(450));
    }
    let (length, is_proper) = rest(&mut client);
    assert!(taken + length > 200_000 && is_proper, "{taken} and {length}");
    assert_eq!(server.engine.stats().requests, 1);
}
