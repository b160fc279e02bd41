//! Fields of trusted proxies, and ignored fields of other peers.

use crate::support::*;
use crate::{request, trusting, who};
use fairlead_engine::{Config, Exchange, ForwardedFields, RemoteAddress};

/// Responds with the client's address, the scheme, the authority and the port.
fn what(exchange: &mut Exchange<'_>) {
    let peer = exchange.peer().map_or("-".to_string(), |peer| peer.ip().to_string());
    let scheme = if exchange.is_secure() { "https" } else { "http" };
    let authority = exchange.forwarded_host().or(exchange.request().host());
    let authority = String::from_utf8_lossy(authority.unwrap_or(b"-")).into_owned();
    let port = exchange
        .forwarded_port()
        .map_or("-".to_string(), |port| port.to_string());
    reply(exchange, &format!("{peer} {scheme} {authority} {port}"));
}

/// A server that trusts 127.0.0.1 and 10.0.0.0/8.
fn server(config: Config) -> Server {
    let config = Config {
        trusted_proxies: trusting(&["127.0.0.1", "10.0.0.0/8"]),
        ..config
    };
    Server::start(config, what)
}

fn assert_answers(server: &Server, cases: &[(&str, &str)]) {
    let mut client = server.connect();
    for (fields, expected) in cases {
        let fields = fields.replace(" | ", "\r\n") + if fields.is_empty() { "" } else { "\r\n" };
        let response = client.send(&request(&fields)).response();
        if *expected == "400" {
            assert_eq!(response.status, 400, "{fields}");
            assert!(client.rest().is_empty());
            client = server.connect();
        } else {
            assert_eq!(response.text(), *expected, "{fields}");
        }
    }
}

#[test]
fn a_trusted_proxy_tells_all_there_is_to_tell() {
    assert_answers(
        &server(config()),
        &[
            ("", "127.0.0.1 http test -"),
            ("X-Forwarded-For: 192.0.2.1", "192.0.2.1 http test -"),
            ("X-Forwarded-For: 192.0.2.1:4000, 10.0.0.1", "192.0.2.1 http test -"),
            (
                "X-Forwarded-For: 6.6.6.6 | X-Forwarded-For: 192.0.2.1",
                "192.0.2.1 http test -",
            ),
            ("X-Forwarded-For: unknown", "127.0.0.1 http test -"),
            ("X-Forwarded-Proto: https", "127.0.0.1 https test -"),
            ("X-Forwarded-Proto: WSS", "127.0.0.1 https test -"),
            ("X-Forwarded-Proto: ftp", "127.0.0.1 http test -"),
            ("X-Forwarded-Scheme: https", "127.0.0.1 https test -"),
            ("X-Forwarded-Ssl: on", "127.0.0.1 https test -"),
            ("X-Forwarded-Ssl: off", "127.0.0.1 http test -"),
            ("X-Forwarded-Proto: http | X-Forwarded-Ssl: on", "127.0.0.1 http test -"),
            (
                "X-Forwarded-Host: shop.example:8443",
                "127.0.0.1 http shop.example:8443 -",
            ),
            ("X-Forwarded-Host: not a host", "127.0.0.1 http test -"),
            ("X-Forwarded-Port: 8443", "127.0.0.1 http test 8443"),
            ("X-Forwarded-Port: 0", "127.0.0.1 http test -"),
            ("X-Forwarded-Port: +80", "127.0.0.1 http test -"),
            ("X-Forwarded-Port: 65536", "127.0.0.1 http test -"),
            ("Forwarded: for=192.0.2.1", "192.0.2.1 http test -"),
            (
                "Forwarded: for=\"[2001:db8::1]:80\";proto=https;host=\"shop.example:1\"",
                "2001:db8::1 https shop.example:1 -",
            ),
            ("Forwarded: for=_hidden;proto=https", "127.0.0.1 https test -"),
            ("Forwarded: proto=https", "127.0.0.1 https test -"),
        ],
    );
}

#[test]
fn of_several_proxies_the_farthest_that_is_trusted_knows_best() {
    let trusted = "X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.0.0.1";
    assert_answers(
        &server(config()),
        &[
            // Both append: the values of the client come before that.
            (
                &format!("{trusted} | X-Forwarded-Proto: ftp, https, http | X-Forwarded-Host: forged, a, b"),
                "192.0.2.1 https a -",
            ),
            // The nearer proxy leaves the field unchanged.
            (&format!("{trusted} | X-Forwarded-Proto: https"), "192.0.2.1 https test -"),
            // The client of the nearest proxy is no proxy.
            (
                "X-Forwarded-For: 6.6.6.6, 192.0.2.1 | X-Forwarded-Proto: https, http | X-Forwarded-Port: 1, 2",
                "192.0.2.1 http test 2",
            ),
            ("X-Forwarded-Proto: https, http", "127.0.0.1 http test -"),
            (
                "Forwarded: for=6.6.6.6;proto=https;host=forged, for=192.0.2.1;proto=http;host=a, for=10.0.0.1;proto=https;host=b",
                "192.0.2.1 http a -",
            ),
            ("Forwarded: for=6.6.6.6 | Forwarded: for=192.0.2.1, for=10.0.0.1", "192.0.2.1 http test -"),
            ("Forwarded: for=192.0.2.1;proto=https, for=10.0.0.1;proto=http", "192.0.2.1 https test -"),
            // The client of the proxy that hides it is unknown.
            ("Forwarded: for=6.6.6.6;proto=https, for=_x, for=10.0.0.1", "10.0.0.1 http test -"),
        ],
    );
}

#[test]
fn fields_that_contradict_each_other_are_refused() {
    assert_answers(
        &server(config()),
        &[
            (
                "X-Forwarded-For: 192.0.2.1 | Forwarded: for=192.0.2.1",
                "192.0.2.1 http test -",
            ),
            (
                "X-Forwarded-For: ::ffff:192.0.2.1 | Forwarded: for=192.0.2.1",
                "::ffff:192.0.2.1 http test -",
            ),
            (
                "X-Forwarded-For: 192.0.2.1 | Forwarded: proto=https",
                "192.0.2.1 https test -",
            ),
            (
                "X-Forwarded-Proto: https | Forwarded: for=192.0.2.1",
                "192.0.2.1 https test -",
            ),
            (
                "X-Forwarded-Host: A.example | Forwarded: host=\"a.example:80\"",
                "127.0.0.1 http A.example -",
            ),
            ("X-Forwarded-For: 192.0.2.1 | Forwarded: for=192.0.2.2", "400"),
            ("X-Forwarded-For: 192.0.2.1 | Forwarded: for=_hidden", "400"),
            ("X-Forwarded-For: unknown | Forwarded: for=192.0.2.1", "400"),
            ("X-Forwarded-For: 192.0.2.1, 10.0.0.1 | Forwarded: for=10.0.0.1", "400"),
            ("X-Forwarded-Proto: https | Forwarded: proto=http", "400"),
            ("X-Forwarded-Host: a | Forwarded: host=b", "400"),
            ("Forwarded: for=\"192.0.2.1", "400"),
            ("Forwarded: for=\"x, for=192.0.2.1", "400"),
        ],
    );
}

#[test]
fn only_one_kind_of_fields_may_count() {
    let both = "X-Forwarded-For: 192.0.2.1 | X-Forwarded-Proto: http | Forwarded: for=192.0.2.2;proto=https";
    for (fields, expected) in [
        (ForwardedFields::XForwarded, "192.0.2.1 http test -"),
        (ForwardedFields::Forwarded, "192.0.2.2 https test -"),
    ] {
        let config = Config {
            forwarded_fields: fields,
            ..config()
        };
        assert_answers(&server(config), &[(both, expected)]);
    }
    let config = Config {
        forwarded_fields: ForwardedFields::XForwarded,
        ..config()
    };
    assert_answers(
        &server(config),
        &[("Forwarded: for=\"malformed", "127.0.0.1 http test -")],
    );
}

#[test]
fn a_field_of_the_settings_takes_the_place_of_the_others() {
    let config = Config {
        remote_address: RemoteAddress::Field(b"X-Client"[..].into()),
        ..config()
    };
    assert_answers(
        &server(config),
        &[
            ("X-Client: 6.6.6.6, 192.0.2.1, 10.0.0.1", "192.0.2.1 http test -"),
            (
                "X-Client: 192.0.2.1 | X-Forwarded-For: 6.6.6.6 | Forwarded: for=7.7.7.7",
                "192.0.2.1 http test -",
            ),
            (
                "X-Forwarded-For: 6.6.6.6 | Forwarded: for=7.7.7.7;proto=https",
                "127.0.0.1 https test -",
            ),
            (
                "X-Client: 192.0.2.1, 10.0.0.1 | X-Forwarded-Proto: https, http",
                "192.0.2.1 https test -",
            ),
        ],
    );
}

#[test]
fn a_fixed_address_and_a_forced_scheme_win() {
    let config = Config {
        remote_address: RemoteAddress::Fixed([198, 51, 100, 1].into()),
        rack_url_scheme: Some(fairlead_engine::Scheme::Http),
        ..config()
    };
    let fields = "X-Forwarded-For: 192.0.2.1 | X-Forwarded-Proto: https | X-Forwarded-Port: 7";
    assert_answers(&server(config), &[(fields, "198.51.100.1 http test 7")]);
}

/// Every field of a proxy, and a malformed one.
const EVERYTHING: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Scheme: https\r\n\
    X-Forwarded-Ssl: on\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 6\r\nX-Client: 192.0.2.1\r\n\
    Forwarded: for=192.0.2.2;proto=https;host=evil\r\nForwarded: for=\"\r\n";

#[test]
fn from_others_nothing_changes_anything() {
    for (networks, remote_address) in [
        (&[][..], RemoteAddress::Socket),
        (&["10.0.0.0/8", "192.0.2.1", "unix"], RemoteAddress::Socket),
        (&["10.0.0.0/8"], RemoteAddress::Field(b"X-Client"[..].into())),
    ] {
        let config = Config {
            trusted_proxies: trusting(networks),
            remote_address,
            ..config()
        };
        let server = Server::start(config, what);
        let mut client = server.connect();
        for fields in EVERYTHING.split_inclusive("\r\n").chain([EVERYTHING]) {
            let text = client.send(&request(fields)).response().text();
            assert_eq!(text, "127.0.0.1 http test -", "{fields}");
        }
    }
}

#[test]
fn what_one_request_says_is_not_said_by_the_next() {
    let server = server(config());
    let mut client = server.connect();
    let all =
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a\r\nX-Forwarded-Port: 7\r\n";
    client.send(&(request(all) + &request("")));
    assert_eq!(client.response().text(), "192.0.2.1 https a 7");
    assert_eq!(client.response().text(), "127.0.0.1 http test -");
}

#[test]
fn a_request_takes_what_its_fields_say_to_another_worker() {
    let (queues, scoreboard) = shared_queues();
    let (release, hold) = std::sync::mpsc::channel::<()>();
    let hold = std::sync::Mutex::new(hold);
    let config = || Config {
        trusted_proxies: trusting(&["127.0.0.1"]),
        ..config()
    };
    let busy = Server::on(
        &listen(),
        config(),
        Some((queues.clone(), 0)),
        std::sync::Arc::new(move |exchange: &mut Exchange<'_>| {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            who(exchange);
        }),
    );
    let mut first = busy.connect();
    first.send(&request(""));
    eventually("it is busy", || busy.engine.stats().busy_threads == 1);
    let mut waiting = busy.connect();
    waiting.send(&request("X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n"));
    eventually("it is in the room", || scoreboard.waiting() == 1);
    let _sibling = Server::on(&listen(), config(), Some((queues, 1)), std::sync::Arc::new(who));
    assert_eq!(waiting.response().text(), "192.0.2.1 https");
    release.send(()).expect("it waits");
    assert_eq!(first.response().text(), "127.0.0.1 http");
}
