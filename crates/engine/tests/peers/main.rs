//! The source of a client's address, trusted fields, the times that clients are told, and the number of requests on a connection.

mod forwarded;
mod https;
mod proxy_headers;
mod server_timing;
#[path = "../support/mod.rs"]
mod support;

use fairlead_engine::{Config, Exchange, RemoteAddress, Scheme, TrustedProxies};
use support::*;

/// Responds with the client's address and the scheme.
fn who(exchange: &mut Exchange<'_>) {
    let peer = exchange.peer().map_or("-".to_string(), |peer| peer.ip().to_string());
    let scheme = if exchange.is_secure() { "https" } else { "http" };
    reply(exchange, &format!("{peer} {scheme}"));
}

fn with_source(remote_address: RemoteAddress) -> Server {
    Server::start(
        Config {
            remote_address,
            ..config()
        },
        who,
    )
}

fn trusting(networks: &[&str]) -> TrustedProxies {
    TrustedProxies::parse(networks.iter().map(ToString::to_string).collect()).expect("networks")
}

fn request(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: test\r\n{fields}\r\n")
}

#[test]
fn a_fixed_address_is_that_of_every_client() {
    let server = with_source(RemoteAddress::Fixed([192, 0, 2, 9].into()));
    assert_eq!(server.connect().get("/").text(), "192.0.2.9 http");
}

#[test]
fn a_field_names_the_client_of_its_request_only() {
    let server = with_source(RemoteAddress::Field(b"x-real-ip"[..].into()));
    let mut client = server.connect();
    for (fields, expected) in [
        ("X-Real-IP: 192.0.2.1, 10.0.0.1\r\n", "192.0.2.1 http"),
        ("", "127.0.0.1 http"),
        ("X-Real-IP: [2001:db8::1]:80\r\n", "2001:db8::1 http"),
        ("X-Real-IP: someone\r\n", "127.0.0.1 http"),
        ("X-Real-IP:\r\n", "127.0.0.1 http"),
        ("X-Real-IP: 192.0.2.1:80 x\r\n", "192.0.2.1 http"),
        ("X-Real-IP: 192.0.2.1.example\r\n", "127.0.0.1 http"),
        (
            "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\n",
            "127.0.0.1 http",
        ),
    ] {
        assert_eq!(client.send(&request(fields)).response().text(), expected, "{fields}");
    }
}

#[test]
fn a_forced_scheme_wins_over_all_fields() {
    for (scheme, expected) in [(Scheme::Https, "127.0.0.1 https"), (Scheme::Http, "127.0.0.1 http")] {
        let server = Server::start(
            Config {
                rack_url_scheme: Some(scheme),
                trusted_proxies: trusting(&["127.0.0.1"]),
                ..config()
            },
            who,
        );
        let text = server
            .connect()
            .send(&request("X-Forwarded-Proto: https\r\n"))
            .response()
            .text();
        assert_eq!(text, expected);
    }
}

/// Number of responses to three pipelined requests.
fn answered(config: Config) -> usize {
    let server = Server::start(config, |exchange| reply(exchange, "ok"));
    let mut client = server.connect();
    client.send(&request("").repeat(3));
    for count in 1..=3 {
        if client.response().head.contains("connection: close\r\n") {
            assert!(client.rest().is_empty());
            return count;
        }
    }
    3
}

#[test]
fn a_connection_carries_as_many_requests_as_it_may() {
    for (max_keep_alive, expected) in [(0, 3), (1, 1), (2, 2), (4, 3)] {
        let config = Config {
            max_keep_alive,
            ..config()
        };
        assert_eq!(answered(config), expected, "{max_keep_alive}");
    }
    let config = Config {
        enable_keep_alives: false,
        ..config()
    };
    assert_eq!(answered(config), 1);
}

#[test]
fn a_client_of_http10_is_not_promised_another_request() {
    let server = Server::start(
        Config {
            enable_keep_alives: false,
            ..config()
        },
        |exchange| reply(exchange, "ok"),
    );
    let mut client = server.connect();
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(client.response().head.contains("connection: close\r\n"));
}

#[test]
fn a_method_that_is_not_supported_never_reaches_the_app() {
    let server = Server::start(
        Config {
            supported_http_methods: vec!["GET".into(), "POST".into()],
            ..config()
        },
        who,
    );
    for (method, status) in [
        ("GET", 200),
        ("POST", 200),
        ("DELETE", 501),
        ("get", 501),
        ("GETS", 501),
    ] {
        let mut client = server.connect();
        client.send(&format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n"));
        assert_eq!(client.response().status, status, "{method}");
    }
}
