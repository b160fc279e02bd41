//! The PROXY protocol: the client behind the peer of a socket.

use crate::support::tls::{self, TlsStream};
use crate::support::*;
use crate::{request, trusting, who};
use fairlead_engine::{Config, Exchange, ProxyVersions, RemoteAddress, Verification};
use std::io::Write;
use std::net::TcpStream;
use std::sync::{mpsc, Mutex};
use std::time::Duration;

const LINE: &str = "PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n";

/// A header of version 2 for 192.0.2.1:40000, with these vectors.
fn block(vectors: &[u8]) -> Vec<u8> {
    let addresses = [192, 0, 2, 1, 192, 0, 2, 2, 0x9c, 0x40, 1, 0xbb];
    let length = (addresses.len() + vectors.len()) as u16;
    let start: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11";
    [start, &length.to_be_bytes(), &addresses, vectors].concat()
}

fn vector(kind: u8, value: &[u8]) -> Vec<u8> {
    [&[kind, 0, value.len() as u8], value].concat()
}

/// The vectors of a proxy with TLS, for a client with a certificate.
fn about_tls() -> Vec<u8> {
    let inner = [
        vector(0x21, b"TLSv1.3"),
        vector(0x23, b"AES"),
        vector(0x22, b"ann"),
        vector(0x28, b"DER"),
    ];
    let tls = vector(0x20, &[&[3, 0, 0, 0, 0], &inner.concat()[..]].concat());
    [vector(0x02, b"shop.example"), tls].concat()
}

const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";

fn server(versions: ProxyVersions, config: Config) -> Server {
    Server::behind_proxy((versions, false), config, None, who)
}

/// Responds with the TLS parameters.
fn session(exchange: &mut Exchange<'_>) {
    let peer = exchange.peer().map(|peer| peer.to_string());
    let text = exchange.session().map_or("none".into(), |session| {
        let verified = session.verification == Verification::Success;
        let name = session.common_name.as_deref().unwrap_or("nobody");
        let host = session.server_name.as_deref().unwrap_or("nowhere");
        let chain = session.client_chain.concat().len();
        format!(
            "{} {} {host} {name} {verified} {chain}",
            session.version, session.cipher
        )
    });
    let claim = exchange.claimed_session().map_or_else(String::new, |claim| {
        format!(
            ", claimed: {} {}",
            claim.cipher,
            claim.common_name.as_deref().unwrap_or("nobody")
        )
    });
    reply(
        exchange,
        &format!("{} {} {text}{claim}", peer.unwrap_or_default(), exchange.is_secure()),
    );
}

fn send(client: &mut Client, bytes: &[u8]) {
    client.stream.write_all(bytes).expect("the server reads");
}

#[test]
fn a_header_names_the_client_of_all_requests() {
    for (versions, header) in [
        (ProxyVersions::V1, LINE.as_bytes().to_vec()),
        (ProxyVersions::V2, block(&[])),
        (ProxyVersions::Any, LINE.as_bytes().to_vec()),
        (ProxyVersions::Any, block(&vector(0xee, b"whatever"))),
    ] {
        let server = server(versions, config());
        let mut client = server.connect();
        send(&mut client, &[&header, request("").as_bytes()].concat());
        assert_eq!(client.response().text(), "192.0.2.1 http");
        assert_eq!(client.get("/").text(), "192.0.2.1 http");
    }
}

#[test]
fn a_header_may_come_byte_by_byte_and_before_the_request() {
    let server = server(ProxyVersions::Any, config());
    for header in [b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n".to_vec(), block(&about_tls())] {
        let mut client = server.connect();
        for byte in &header {
            send(&mut client, &[*byte]);
        }
        let expected = if header[0] == b'P' {
            "2001:db8::1 http"
        } else {
            "192.0.2.1 https"
        };
        assert_eq!(client.get("/").text(), expected);
    }
}

#[test]
fn a_proxy_that_knows_no_client_is_the_client() {
    let server = server(ProxyVersions::Any, config());
    for header in [b"PROXY UNKNOWN\r\n", LOCAL] {
        let mut client = server.connect();
        send(&mut client, &[header, request("").as_bytes()].concat());
        assert_eq!(client.response().text(), "127.0.0.1 http");
    }
}

#[test]
fn a_connection_without_a_valid_header_is_refused_and_nothing_of_it_is_served() {
    let behind = |header: &[u8]| [header, request("").as_bytes()].concat();
    let mut long = block(&[])[..16].to_vec();
    long[14..].copy_from_slice(&[0xff, 0xff]);
    for (versions, bytes) in [
        (ProxyVersions::V1, request("").into_bytes()),
        (ProxyVersions::V1, behind(b"PROXY nonsense\r\n")),
        (ProxyVersions::V1, behind(b"\r\nPROXY UNKNOWN\r\n")),
        (ProxyVersions::V1, behind(&block(&[]))),
        (ProxyVersions::V2, request("").into_bytes()),
        (ProxyVersions::V2, behind(LINE.as_bytes())),
        (ProxyVersions::V2, behind(&block(&[0xee, 0, 9]))),
        (ProxyVersions::V2, behind(&block(&vector(0x03, &[0; 4])))),
        (ProxyVersions::V2, behind(&long)),
        (ProxyVersions::Any, request("").into_bytes()),
        (ProxyVersions::Any, behind(b"\x16\x03\x01\x00\x05hello")),
        (ProxyVersions::Any, behind(b"PROXY UNKNOWN\r\nPROXY UNKNOWN\r\n")),
        (ProxyVersions::Any, behind(&[block(&[]), block(&[])].concat())),
    ] {
        let server = server(versions, config());
        let mut client = server.connect();
        send(&mut client, &bytes);
        assert_eq!(client.response().status, 400, "{bytes:?}");
        assert!(client.rest().is_empty());
        assert_eq!(server.engine.stats().requests, 0);
    }
}

#[test]
fn a_header_that_trickles_is_refused_in_the_time_of_a_head() {
    let config = Config {
        head_timeout: Duration::from_millis(200),
        ..config()
    };
    let server = server(ProxyVersions::Any, config);
    for start in [&b"PROXY TCP4 192."[..], &block(&[])[..20]] {
        let mut slow = server.connect();
        send(&mut slow, start);
        assert_eq!(slow.response().status, 408);
    }
    for silent in [&b"PROXY UNKNOWN\r\n"[..], b""] {
        let mut client = server.connect();
        send(&mut client, silent);
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_header_tells_what_tls_the_client_has_used() {
    let server = Server::behind_proxy((ProxyVersions::V2, false), config(), None, session);
    for (header, expected) in [
        (
            block(&about_tls()),
            "192.0.2.1:40000 true TLSv1.3 AES shop.example ann true 3",
        ),
        (block(&[]), "192.0.2.1:40000 false none"),
        (block(&vector(0x20, &[0; 5])), "192.0.2.1:40000 false none"),
    ] {
        let mut client = server.connect();
        send(&mut client, &header);
        assert_eq!(client.get("/").text(), expected);
    }
}

#[test]
fn a_header_counts_from_trusted_proxies_only_if_there_are_any() {
    for (networks, expected) in [
        (&["127.0.0.0/8"], "192.0.2.1 https"),
        (&["10.0.0.0/8"], "127.0.0.1 http"),
    ] {
        let config = Config {
            trusted_proxies: trusting(networks),
            ..config()
        };
        let server = server(ProxyVersions::V2, config);
        let mut client = server.connect();
        send(&mut client, &block(&about_tls()));
        assert_eq!(client.get("/").text(), expected);
    }
}

#[test]
fn fields_come_from_whom_the_proxy_speaks_for() {
    // A load balancer that forwards bytes also forwards the fields of its clients.
    let fields = "X-Forwarded-For: 203.0.113.7\r\nX-Forwarded-Proto: https\r\n";
    for (networks, header, expected) in [
        (&["127.0.0.1"][..], LINE, "192.0.2.1 http"),
        (&["127.0.0.1", "192.0.2.1"], LINE, "203.0.113.7 https"),
        (&["127.0.0.1"], "PROXY UNKNOWN\r\n", "203.0.113.7 https"),
        (&["192.0.2.1"], LINE, "127.0.0.1 http"),
    ] {
        let config = Config {
            trusted_proxies: trusting(networks),
            ..config()
        };
        let server = server(ProxyVersions::V1, config);
        let mut client = server.connect();
        client.send(&format!("{header}{}", request(fields)));
        assert_eq!(client.response().text(), expected, "{networks:?} {header}");
    }
}

#[test]
fn a_fixed_address_stays_what_it_is() {
    let config = Config {
        remote_address: RemoteAddress::Fixed([198, 51, 100, 1].into()),
        ..config()
    };
    let server = server(ProxyVersions::V1, config);
    let mut client = server.connect();
    client.send(&format!("{LINE}{}", request("")));
    assert_eq!(client.response().text(), "198.51.100.1 http");
}

/// A connection that has sent `header`, and now begins with TLS.
fn with_tls(server: &Server, header: &[u8]) -> Client<TlsStream> {
    let mut tls = tls::stream(server.address, &tls::client(&[&rustls::version::TLS13]));
    tls.sock.write_all(header).expect("the server reads");
    Client::over(tls)
}

/// The response of [`session`] for a client described by [`about_tls`], from an untrusted proxy.
fn told(has_tls: bool) -> &'static str {
    match has_tls {
        false => "192.0.2.1:40000 true TLSv1.3 AES shop.example ann true 3",
        true => "192.0.2.1:40000 true TLSv1.3 TLS_AES_256_GCM_SHA384 localhost nobody false 0",
    }
}

#[test]
fn a_header_comes_before_a_handshake() {
    let server = Server::behind_proxy((ProxyVersions::Any, true), config(), None, session);
    let cipher = "TLSv1.3 TLS_AES_256_GCM_SHA384 localhost nobody false 0";
    for (header, expected) in [
        (LINE.as_bytes(), format!("192.0.2.1:40000 true {cipher}")),
        (&block(&[]), format!("192.0.2.1:40000 true {cipher}")),
        // Any client could have sent this header, and the handshake is with the server.
        (&block(&about_tls()), format!("192.0.2.1:40000 true {cipher}")),
    ] {
        assert_eq!(with_tls(&server, header).get("/").text(), expected);
    }
    let config = Config {
        trusted_proxies: trusting(&["127.0.0.1"]),
        ..config()
    };
    let trusting = Server::behind_proxy((ProxyVersions::Any, true), config, None, session);
    let told = with_tls(&trusting, &block(&about_tls())).get("/").text();
    assert_eq!(told, format!("192.0.2.1:40000 true {cipher}, claimed: AES ann"));
    let mut tls = tls::stream(server.address, &tls::client(&[&rustls::version::TLS13]));
    for byte in block(&about_tls()) {
        tls.sock.write_all(&[byte]).expect("the server reads");
    }
    assert!(Client::over(tls).get("/").text().starts_with("192.0.2.1:40000"));
}

#[test]
fn without_a_header_there_is_no_handshake() {
    let config = Config {
        handshake_timeout: Duration::from_millis(200),
        ..config()
    };
    let server = Server::behind_proxy((ProxyVersions::Any, true), config, None, session);
    for start in [
        b"PROXY nonsense\r\n",
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"GET / HTTP/1.1\r\n",
        b"PROXY TC",
        b"",
    ] {
        let mut client = server.connect();
        send(&mut client, start);
        assert!(client.is_closed(), "{start:?}");
    }
    assert_eq!(
        (server.engine.stats().handshakes, server.engine.stats().requests),
        (0, 0)
    );
}

#[test]
fn a_connection_takes_its_header_to_another_worker() {
    let (queues, scoreboard) = shared_queues();
    let config = || Config {
        waiting_room: false,
        ..config()
    };
    let start = |slot, has_tls| {
        let shared = Some((queues.clone(), slot));
        Server::behind_proxy((ProxyVersions::Any, has_tls), config(), shared, session)
    };
    for (slots, has_tls) in [([0, 1], false), ([2, 3], true)] {
        let servers = slots.map(|slot| start(slot, has_tls));
        let whole = block(&about_tls());
        let told = told(has_tls);
        // A connection with a response; one with a PROXY header; one with an incomplete header.
        let mut secured = has_tls.then(|| with_tls(&servers[0], &whole));
        let mut plain = (!has_tls).then(|| servers[0].connect());
        if let Some(client) = &mut plain {
            send(client, &whole);
        }
        let mut get = || match (&mut plain, &mut secured) {
            (Some(client), _) => client.get("/").text(),
            (_, client) => client.as_mut().expect("a client").get("/").text(),
        };
        assert_eq!(get(), told);
        let mut announced = TcpStream::connect(servers[0].address).expect("a connection");
        let mut begun = TcpStream::connect(servers[0].address).expect("a connection");
        announced.write_all(&whole).expect("the server reads");
        begun.write_all(&whole[..30]).expect("the server reads");
        eventually("they are accepted", || servers[0].engine.stats().connections == 3);
        servers[0].engine.drain_and_migrate();
        eventually("all have moved", || servers[1].engine.stats().taken_over == 3);
        begun.write_all(&whole[30..]).expect("the server reads");
        assert_eq!(get(), told);
        if has_tls {
            for socket in [announced, begun] {
                let mut tls = tls::stream(servers[1].address, &tls::client(&[&rustls::version::TLS13]));
                tls.sock = socket;
                assert_eq!(Client::over(tls).get("/").text(), told);
            }
        } else {
            for socket in [announced, begun] {
                assert_eq!(Client::over(socket).get("/").text(), told);
            }
        }
        drop(servers);
    }
    let _ = scoreboard;
}

#[test]
fn a_request_takes_its_header_to_another_worker_with_tls_and_without() {
    for has_tls in [false, true] {
        let (queues, scoreboard) = shared_queues();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let kind = (ProxyVersions::V2, has_tls);
        let busy = Server::behind_proxy(kind, config(), Some((queues.clone(), 0)), move |exchange| {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            session(exchange);
        });
        let told = told(has_tls);
        let ask = |header: &[u8]| -> Box<dyn FnOnce() -> String> {
            if has_tls {
                let mut client = with_tls(&busy, header);
                client.send(&request(""));
                Box::new(move || client.response().text())
            } else {
                let mut client = busy.connect();
                send(&mut client, &[header, request("").as_bytes()].concat());
                Box::new(move || client.response().text())
            }
        };
        let first = ask(LOCAL);
        eventually("it is busy", || busy.engine.stats().busy_threads == 1);
        let waiting = ask(&block(&about_tls()));
        eventually("it is in the room", || scoreboard.waiting() == 1);
        let _sibling = Server::behind_proxy(kind, config(), Some((queues, 1)), session);
        assert_eq!(waiting(), told);
        release.send(()).expect("it waits");
        assert!(first().starts_with("127.0.0.1:"));
    }
}
