//! Requests without TLS, and browsers that should not send them.

use crate::support::tls;
use crate::support::*;
use crate::{request, trusting};
use fairlead_engine::{Config, Exchange, FilesConfig, HttpsRedirect, Scheme};
use std::sync::Arc;

fn redirecting(redirect_to_https: HttpsRedirect) -> Config {
    Config {
        redirect_to_https,
        priority_paths: vec!["/up".into()],
        ..config()
    }
}

fn app(exchange: &mut Exchange<'_>) {
    reply(exchange, "served");
}

fn field<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let mut lines = response.head.lines().filter_map(|line| line.split_once(": "));
    lines.find_map(|(own, value)| (own == name).then_some(value))
}

#[test]
fn a_request_is_sent_to_the_same_place_with_tls() {
    let server = Server::start(redirecting(HttpsRedirect::ToListener), app);
    let mut client = server.connect();
    for (line, host, expected) in [
        ("GET /", "shop.example", "301 https://shop.example/"),
        ("HEAD /", "shop.example:8080", "301 https://shop.example/"),
        (
            "GET /a/../%20b?c=d?e&f=//x",
            "shop.example",
            "301 https://shop.example/a/../%20b?c=d?e&f=//x",
        ),
        (
            "GET //evil.example/",
            "shop.example",
            "301 https://shop.example//evil.example/",
        ),
        ("GET /", "[2001:db8::1]:80", "301 https://[2001:db8::1]/"),
        (
            "GET http://other.example:80?a",
            "shop.example",
            "301 https://other.example/?a",
        ),
        ("POST /form", "shop.example", "308 https://shop.example/form"),
        ("DELETE /one", "shop.example", "308 https://shop.example/one"),
        ("OPTIONS *", "shop.example", "308 https://shop.example/"),
        ("GET /up", "10.0.0.1", "served"),
        ("GET /up?full", "10.0.0.1", "served"),
        ("GET /upper", "10.0.0.1", "301 https://10.0.0.1/upper"),
        ("GET /.well-known/acme-challenge/token", "shop.example", "served"),
        (
            "GET /.well-known/security.txt",
            "a",
            "301 https://a/.well-known/security.txt",
        ),
    ] {
        client.send(&format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let response = client.response_to(&line[..4]);
        let found = match field(&response, "location") {
            Some(location) => format!("{} {location}", response.status),
            None => response.text(),
        };
        assert_eq!(found, expected, "{line}");
    }
    assert_eq!(server.engine.stats().requests, 14);
}

#[test]
fn a_host_that_cannot_be_one_leads_nowhere() {
    let server = Server::start(redirecting(HttpsRedirect::ToListener), app);
    for head in [
        "GET / HTTP/1.0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    ] {
        let response = server.connect().send(head).response();
        assert_eq!((response.status, field(&response, "location")), (400, None), "{head}");
    }
}

#[test]
fn the_port_is_that_of_the_settings() {
    let server = Server::start(redirecting(HttpsRedirect::ToPort(8443)), app);
    let response = server.connect().get("/");
    assert_eq!(field(&response, "location"), Some("https://test:8443/"));
}

#[test]
fn the_body_of_such_a_request_is_not_read() {
    let server = Server::start(redirecting(HttpsRedirect::ToListener), app);
    for framing in [
        "Content-Length: 1000000",
        "Content-Length: 7\r\nExpect: 100-continue",
        "Transfer-Encoding: chunked",
    ] {
        let mut client = server.connect();
        client.send(&format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
        let response = client.response();
        assert_eq!(
            (response.status, field(&response, "connection")),
            (308, Some("close")),
            "{framing}"
        );
        assert!(client.rest().is_empty());
    }
    let mut client = server.connect();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(client.response().status, 308);
    assert!(client.rest().is_empty(), "what is in the body is no request");
}

#[test]
fn a_request_that_has_come_with_tls_is_served() {
    let config = || Config {
        trusted_proxies: trusting(&["127.0.0.1"]),
        hsts: Some("max-age=60".into()),
        ..redirecting(HttpsRedirect::ToListener)
    };
    let server = Server::start(config(), app);
    let mut client = server.connect();
    assert_eq!(
        client.send(&request("X-Forwarded-Proto: https\r\n")).response().text(),
        "served"
    );
    let forwarded = client.send(&request(
        "X-Forwarded-Proto: http\r\nX-Forwarded-Host: shop.example:1\r\n",
    ));
    assert_eq!(field(&forwarded.response(), "location"), Some("https://shop.example/"));
    let forced = Config {
        rack_url_scheme: Some(Scheme::Https),
        ..config()
    };
    assert_eq!(Server::start(forced, app).connect().get("/").text(), "served");
    let server = Server::with_tls(&listen(), redirecting(HttpsRedirect::ToPort(1)), None, Arc::new(app));
    assert_eq!(tls::connect(&server).get("/").text(), "served");
}

#[test]
fn a_forwarded_scheme_from_others_does_not_save_a_request_from_the_redirect() {
    let server = Server::start(redirecting(HttpsRedirect::ToListener), app);
    let fields = "X-Forwarded-Proto: https\r\nForwarded: proto=https;host=evil\r\nX-Forwarded-Host: evil\r\n";
    let response = server.connect().send(&request(fields)).response();
    assert_eq!(field(&response, "location"), Some("https://test/"));
}

const HSTS: &str = "strict-transport-security";

#[test]
fn browsers_are_told_to_use_tls_in_responses_that_have_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file.txt"), "file").expect("a file");
    let config = || Config {
        trusted_proxies: trusting(&["127.0.0.1"]),
        hsts: Some("max-age=60".into()),
        files: FilesConfig {
            public_dir: Some(folder.path().into()),
            file_cache_bytes: 1 << 20,
            ..FilesConfig::default()
        },
        ..config()
    };
    let call = |exchange: &mut Exchange<'_>| {
        exchange.start(200);
        if path(exchange) == "/own" {
            let _ = exchange.field(HSTS.as_bytes(), b"max-age=0");
        }
        exchange.end_head(Some(0));
        exchange.finish();
    };
    let server = Server::start(config(), call);
    let mut client = server.connect();
    for (path, scheme, expected) in [
        ("/", "https", Some("max-age=60")),
        ("/own", "https", Some("max-age=0")),
        ("/file.txt", "https", Some("max-age=60")),
        ("/", "http", None),
        ("/file.txt", "http", None),
    ] {
        client.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: {scheme}\r\n\r\n"
        ));
        let response = client.response();
        assert_eq!(field(&response, HSTS), expected, "{path} {scheme}");
        assert_eq!(response.head.matches(HSTS).count(), usize::from(expected.is_some()));
    }
    let server = Server::with_tls(&listen(), config(), None, Arc::new(call));
    assert_eq!(field(&tls::connect(&server).get("/"), HSTS), Some("max-age=60"));
}
