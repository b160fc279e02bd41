//! Where the address of a client comes from, whose fields count, and how many requests a connection carries.

mod support;

use fairlead_engine::{Config, Exchange, RemoteAddress, Scheme, TrustedProxies};
use std::time::Duration;
use support::*;

/// Answers with the client's address and the scheme.
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
fn the_line_of_a_proxy_names_the_client_of_all_requests() {
    let server = with_source(RemoteAddress::ProxyLine);
    let mut client = server.connect();
    client.send(&format!("PROXY TCP4 192.0.2.1 192.0.2.2 40000 80\r\n{}", request("")));
    assert_eq!(client.response().text(), "192.0.2.1 http");
    assert_eq!(client.get("/").text(), "192.0.2.1 http");
}

#[test]
fn the_line_may_come_in_parts_and_before_the_request() {
    let server = with_source(RemoteAddress::ProxyLine);
    let mut client = server.connect();
    for part in ["P", "ROXY TCP6 2001:db8::1 ::1 1 2", "\r", "\n"] {
        client.send(part);
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(client.get("/").text(), "2001:db8::1 http");
}

#[test]
fn a_proxy_that_knows_no_client_is_the_client() {
    let server = with_source(RemoteAddress::ProxyLine);
    let mut client = server.connect();
    client.send(&format!("PROXY UNKNOWN\r\n{}", request("")));
    assert_eq!(client.response().text(), "127.0.0.1 http");
}

#[test]
fn a_connection_without_the_line_is_refused() {
    let server = with_source(RemoteAddress::ProxyLine);
    for start in [
        "GET / HTTP/1.1\r\nHost: test\r\n\r\n",
        "PROXY nonsense\r\n",
        "\r\nPROXY UNKNOWN\r\n",
    ] {
        let mut client = server.connect();
        client.send(start);
        assert_eq!(client.response().status, 400, "{start:?}");
        assert!(client.rest().is_empty());
    }
}

#[test]
fn a_second_line_is_no_request() {
    let server = with_source(RemoteAddress::ProxyLine);
    let mut client = server.connect();
    client.send("PROXY UNKNOWN\r\nPROXY UNKNOWN\r\n\r\n");
    assert_eq!(client.response().status, 400);
}

#[test]
fn a_line_that_trickles_is_refused_in_the_time_of_a_head() {
    let server = Server::start(
        Config {
            remote_address: RemoteAddress::ProxyLine,
            head_timeout: Duration::from_millis(200),
            ..config()
        },
        who,
    );
    let mut slow = server.connect();
    slow.send("PROXY TCP4 192.");
    assert_eq!(slow.response().status, 408);
    let mut silent = server.connect();
    silent.send("PROXY UNKNOWN\r\n");
    assert!(silent.rest().is_empty());
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
    ] {
        assert_eq!(client.send(&request(fields)).response().text(), expected, "{fields}");
    }
}

#[test]
fn fields_count_from_trusted_proxies_only() {
    for (networks, expected) in [
        (&["127.0.0.0/8"], "192.0.2.1 https"),
        (&["10.0.0.0/8"], "127.0.0.1 http"),
    ] {
        let server = Server::start(
            Config {
                remote_address: RemoteAddress::Field(b"X-Real-IP"[..].into()),
                trusted_proxies: trusting(networks),
                ..config()
            },
            who,
        );
        let fields = "X-Real-IP: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n";
        assert_eq!(server.connect().send(&request(fields)).response().text(), expected);
    }
}

#[test]
fn a_proxy_is_trusted_by_its_own_address_and_not_by_that_of_its_client() {
    let server = Server::start(
        Config {
            remote_address: RemoteAddress::ProxyLine,
            trusted_proxies: trusting(&["192.0.2.1"]),
            ..config()
        },
        who,
    );
    let mut client = server.connect();
    client.send("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    let response = client.send(&request("X-Forwarded-Proto: https\r\n")).response();
    assert_eq!(response.text(), "192.0.2.1 http");
}

#[test]
fn three_fields_can_say_that_the_client_has_used_https() {
    let server = Server::start(
        Config {
            trusted_proxies: trusting(&["127.0.0.1"]),
            ..config()
        },
        who,
    );
    let mut client = server.connect();
    for (fields, scheme) in [
        ("X-Forwarded-Proto: https\r\n", "https"),
        ("X-Forwarded-Proto: HTTPS,http\r\n", "https"),
        ("X-Forwarded-Proto: http\r\n", "http"),
        ("X-Forwarded-Proto: http,https\r\n", "http"),
        ("X-Forwarded-Scheme: https\r\n", "https"),
        ("X-Forwarded-Ssl: on\r\n", "https"),
        ("X-Forwarded-Ssl: off\r\n", "http"),
        ("", "http"),
    ] {
        let text = client.send(&request(fields)).response().text();
        assert_eq!(text, format!("127.0.0.1 {scheme}"), "{fields}");
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

/// How many of three pipelined requests are answered.
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
