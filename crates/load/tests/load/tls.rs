//! https and wss: handshakes, trust, client certificates, and the same behaviour over TLS.

use crate::frames::{accept, message, whole, TEXT};
use crate::output::count_leaves;
use crate::support::{bench, bench_with, measure, Outcome, Output, Peer, Server, OK};
use crate::terminator::{Authority, Terms, BOTH, ONLY_12, ONLY_13};
use rustls::SupportedProtocolVersion;
use serde_json::{json, Value};
use std::io::{self, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// A server that sends the same response to every request, with a valid certificate.
fn answering(authority: &Authority, versions: &[&'static SupportedProtocolVersion], answer: &'static [u8]) -> Server {
    let terms = authority.terms("localhost", versions, false);
    Server::start_secure(terms, move |peer| loop {
        peer.request()?;
        peer.send(answer)?;
    })
}

/// A server that requires client certificates.
fn demanding(authority: &Authority, versions: &[&'static SupportedProtocolVersion]) -> Server {
    let terms = authority.terms("localhost", versions, true);
    Server::start_secure(terms, move |peer| loop {
        peer.request()?;
        peer.send(OK)?;
    })
}

/// The error line of a run that reached no server.
fn refusal(outcome: &Outcome) -> &str {
    assert_eq!((outcome.status, outcome.stdout.as_str()), (1, ""), "{outcome:?}");
    &outcome.stderr
}

#[test]
fn requests_over_kept_connections_cost_one_handshake_each() {
    let authority = Authority::new("kept");
    let server = answering(&authority, &BOTH, OK);
    let report = measure(
        0,
        &[&server.url, "--cacert", &authority.cacert(), "-n", "200", "-c", "4"],
    );
    assert_eq!(report["statuses"]["2xx"], 200);
    assert_eq!(report["bytes"]["read"], 200 * OK.len(), "bytes of HTTP, not of records");
    assert_eq!((server.requests(), server.connections()), (200, 4));
    let tls = &report["tls"];
    assert_eq!(
        (&tls["handshakes"], &tls["full"], &tls["resumed"]),
        (&json!(4), &json!(4), &json!(0))
    );
    assert_eq!(
        tls["agreed"],
        json!([{ "version": "TLSv1.3", "cipher": "TLS_AES_256_GCM_SHA384", "connections": 4 }])
    );
    assert!(tls["latency_ms"]["full"]["p99"].as_f64() > Some(0.0), "{report}");
    assert_eq!(tls["latency_ms"]["resumed"]["p99"], Value::Null);
}

#[test]
fn connections_that_replace_others_resume_their_sessions_if_they_are_to() {
    let authority = Authority::new("resume");
    for versions in [&ONLY_12, &ONLY_13] {
        let server = answering(&authority, versions, OK);
        let run = |options: &[&str]| {
            let cacert = authority.cacert();
            let common = [
                server.url.as_str(),
                "--cacert",
                &cacert,
                "-n",
                "12",
                "-c",
                "3",
                "--no-keep-alive",
            ];
            let report = measure(0, &[&common, options].concat());
            assert_eq!(report["requests"]["answered"], 12, "{report}");
            (report["tls"]["full"].as_u64(), report["tls"]["resumed"].as_u64())
        };
        assert_eq!(run(&[]), (Some(12), Some(0)));
        assert_eq!(run(&["--no-resume"]), (Some(12), Some(0)));
        assert_eq!(
            run(&["--resume"]),
            (Some(3), Some(9)),
            "the first of each client has nothing to resume"
        );
        assert_eq!(server.connections(), 36);
    }
}

#[test]
fn documents_have_the_documented_keys() {
    let authority = Authority::new("keys");
    let server = answering(&authority, &BOTH, OK);
    let report = measure(0, &[&server.url, "-k", "-n", "20", "-c", "1"]);
    let names =
        "/handshakes /per_second /full /resumed /agreed/0/version /agreed/0/cipher /agreed/0/connections /reasons";
    let mut paths: Vec<String> = names.split_whitespace().map(|name| format!("/tls{name}")).collect();
    for kind in ["full", "resumed"] {
        let figures = ["min", "mean", "p50", "p75", "p90", "p95", "p99", "p99_9", "max"];
        paths.extend(figures.map(|figure| format!("/tls/latency_ms/{kind}/{figure}")));
    }
    let settings = ["trust", "certificate", "version", "resume"];
    paths.extend(settings.map(|setting| format!("/settings/tls/{setting}")));
    for path in &paths {
        assert!(report.pointer(path).is_some(), "{path} is missing in {report}");
    }
    let found = count_leaves(&report["tls"]) + count_leaves(&report["settings"]["tls"]);
    // An empty object has no leaves.
    assert_eq!(found, paths.len() - 1, "nothing is undocumented: {report}");
}

#[test]
fn the_report_has_handshakes_beside_requests() {
    let authority = Authority::new("report");
    let server = answering(&authority, &BOTH, OK);
    let cacert = authority.cacert();
    let new = ["--no-keep-alive", "--resume"];
    let outcome = bench(
        &[
            &[server.url.as_str(), "--cacert", &cacert, "-n", "9", "-c", "2"][..],
            &new,
        ]
        .concat(),
    );
    for part in [
        ", a new one for every request that resumes a session\n",
        "\nhandshakes 2 full, 7 resumed, ",
        "\nagreed on  TLSv1.3 TLS_AES_256_GCM_SHA384: 9\n",
        "\nlatency          raw    corrected    handshake   resumption\n",
    ] {
        assert!(outcome.stdout.contains(part), "{part} is missing in {}", outcome.stdout);
    }
}

#[test]
fn the_version_can_be_chosen() {
    let authority = Authority::new("version");
    let server = answering(&authority, &BOTH, OK);
    for (option, version) in [("1.2", "TLSv1.2"), ("1.3", "TLSv1.3")] {
        let report = measure(0, &[&server.url, "--insecure", "-n", "4", "--tls-version", option]);
        let agreed = report["tls"]["agreed"].as_array().expect("a list");
        assert_eq!((agreed.len(), &agreed[0]["version"]), (1, &json!(version)), "{report}");
    }
    let new_only = answering(&authority, &ONLY_13, OK);
    let outcome = bench(&[&new_only.url, "--insecure", "-n", "4", "--tls-version", "1.2"]);
    assert!(
        refusal(&outcome).contains("the server sent the alert ProtocolVersion"),
        "{outcome:?}"
    );
}

#[test]
fn a_certificate_has_to_come_from_somebody_we_trust() {
    let (authority, other) = (Authority::new("trust"), Authority::new("other"));
    let server = answering(&authority, &BOTH, OK);
    let (good, bad) = (authority.cacert(), other.cacert());
    let outcome = bench(&[&server.url, "-n", "4", "--cacert", &bad]);
    assert!(
        refusal(&outcome).contains("not from a trusted authority"),
        "{outcome:?}"
    );
    // The certificates that OpenSSL's variables name are the system's trusted ones.
    let of_system = |file: &str| {
        let variables = [("SSL_CERT_FILE", file), ("SSL_CERT_DIR", "/nowhere/at/all")];
        bench_with(&variables, &[&server.url, "-n", "4"])
    };
    let outcome = of_system(&bad);
    assert!(
        refusal(&outcome).contains("not from a trusted authority"),
        "{outcome:?}"
    );
    let outcome = of_system("/dev/null");
    assert!(
        refusal(&outcome).contains("this system has no trusted certificates"),
        "{outcome:?}"
    );
    assert_eq!(server.requests(), 0, "nothing is asked of a server that is not trusted");
    let outcome = of_system(&good);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(measure(0, &[&server.url, "-n", "4", "-k"])["requests"]["answered"], 4);
    assert_eq!(server.requests(), 8);
}

#[test]
fn a_certificate_has_to_be_of_the_host_in_the_url() {
    let authority = Authority::new("host");
    let server = Server::start_secure(authority.terms("another.example", &BOTH, false), Peer::hold);
    let outcome = bench(&[&server.url, "-n", "4", "--cacert", &authority.cacert()]);
    assert!(refusal(&outcome).contains("is for another name"), "{outcome:?}");
}

#[test]
fn a_client_can_have_a_certificate() {
    let authority = Authority::new("client");
    authority.certificate("client");
    let (cert, key, both) = (
        authority.path("client.pem"),
        authority.path("client.key"),
        authority.path("client.both"),
    );
    for versions in [&ONLY_12, &ONLY_13] {
        let server = demanding(&authority, versions);
        for identity in [&["--cert", cert.as_str(), "--key", &key][..], &["--cert", &both]] {
            let report = measure(
                0,
                &[&[server.url.as_str(), "-k", "-n", "6", "-c", "2"], identity].concat(),
            );
            assert_eq!(
                (
                    &report["requests"]["answered"],
                    &report["settings"]["tls"]["certificate"]
                ),
                (&json!(6), &json!(true))
            );
        }
    }
}

#[test]
fn a_client_without_the_certificate_that_is_demanded_gets_to_know_why() {
    let authority = Authority::new("demand");
    let old = demanding(&authority, &ONLY_12);
    let outcome = bench(&[&old.url, "-k", "-n", "3", "-c", "1"]);
    assert!(refusal(&outcome).contains("the alert "), "{outcome:?}");
    // In TLS 1.3 the client's handshake is complete before the server checks its certificate.
    let new = demanding(&authority, &ONLY_13);
    let report = measure(2, &[&new.url, "-k", "-n", "3", "-c", "1"]);
    assert_eq!(
        (&report["errors"]["tls"], &report["requests"]["answered"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(
        report["tls"]["reasons"],
        json!({ "the server sent the alert CertificateRequired": 3 })
    );
}

#[test]
fn a_server_that_does_not_speak_tls_is_named_as_such() {
    let server = Server::start(|peer| peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
    let url = server.url.replace("http://", "https://");
    let outcome = bench(&[&url, "-n", "3", "-k"]);
    assert!(refusal(&outcome).contains("does not speak TLS here"), "{outcome:?}");
}

#[test]
fn a_server_that_closes_during_handshakes_fails_requests_and_is_tried_again() {
    let closing = Server::start(|_| Ok(()));
    let url = closing.url.replace("http://", "https://");
    let outcome = bench(&[&url, "-n", "2", "-c", "1", "-k"]);
    assert!(
        refusal(&outcome).contains("closed the connection during the handshake"),
        "{outcome:?}"
    );
    assert_eq!(closing.connections(), 2);
}

#[test]
fn a_handshake_that_does_not_end_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", listener.local_addr().expect("bound"));
    let outcome = bench(&[&url, "-n", "1", "-c", "1", "-k", "--timeout", "0.2"]);
    assert!(refusal(&outcome).contains("the handshake timed out"), "{outcome:?}");
}

#[test]
fn answers_larger_than_any_buffer_and_pipelines_go_through_records() {
    let authority = Authority::new("large");
    let server = Server::start_secure(authority.terms("localhost", &BOTH, false), |peer| loop {
        peer.request()?;
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n")?;
        peer.send(&vec![b'x'; 3_000_000])?;
    });
    let report = measure(0, &[&server.url, "-k", "-n", "8", "-c", "2"]);
    assert_eq!(report["requests"]["answered"], 8);
    assert!(report["bytes"]["read"].as_u64() > Some(24_000_000), "{report}");

    // Responds only when all requests of a pipeline have arrived, of 40 kB each: more than TLS accepts at once.
    let server = Server::start_secure(authority.terms("localhost", &BOTH, false), |peer| loop {
        (0..4).try_for_each(|_| peer.request().map(drop))?;
        peer.send(&OK.repeat(4))?;
    });
    let body = "b".repeat(40_000);
    let report = measure(
        0,
        &[
            &server.url,
            "-k",
            "-n",
            "40",
            "-c",
            "2",
            "--pipeline",
            "4",
            "--body",
            &body,
        ],
    );
    assert_eq!((&report["requests"]["answered"], server.requests()), (&json!(40), 40));
}

#[test]
fn an_answer_that_ends_with_the_connection_is_whole_only_if_tls_says_so() {
    let authority = Authority::new("end");
    let serve = |peer: &mut Peer| {
        peer.request()?;
        peer.send(b"HTTP/1.0 200 OK\r\n\r\nas long as it takes")
    };
    let terms = authority.terms("localhost", &BOTH, false);
    let polite = Server::start_secure(terms.clone(), serve);
    assert_eq!(
        measure(0, &[&polite.url, "-k", "-n", "6", "-c", "2"])["requests"]["answered"],
        6
    );
    let cut = Server::start_secure(Terms { polite: false, ..terms }, serve);
    let report = measure(2, &[&cut.url, "-k", "-n", "6", "-c", "2"]);
    assert_eq!(
        (&report["errors"]["closed"], &report["requests"]["answered"]),
        (&json!(6), &json!(0))
    );
}

#[test]
fn websockets_speak_over_tls() {
    let authority = Authority::new("wss");
    let mut server = Server::start_secure(authority.terms("localhost", &BOTH, false), |peer| {
        accept(peer)?;
        loop {
            let message = message(peer)?;
            peer.send(&whole(TEXT, &message.payload))?;
        }
    });
    server.url = server.url.replace("https://", "wss://");
    let report = measure(
        0,
        &[
            &server.url,
            "--cacert",
            &authority.cacert(),
            "-n",
            "60",
            "-c",
            "3",
            "--size",
            "30000",
        ],
    );
    assert_eq!(
        (&report["requests"]["answered"], &report["sockets"]["left"]),
        (&json!(60), &json!(3))
    );

    let outcome = bench(&[
        &server.url,
        "--cacert",
        &Authority::new("nobody").cacert(),
        "-n",
        "60",
        "-c",
        "3",
    ]);
    assert!(
        refusal(&outcome).contains("not from a trusted authority"),
        "{outcome:?}"
    );
}

#[test]
fn websockets_that_are_refused_by_tls_are_counted() {
    let authority = Authority::new("refused");
    let server = demanding(&authority, &ONLY_13);
    let url = server.url.replace("https://", "wss://");
    let report = measure(2, &[&url, "-k", "-n", "6", "-c", "3"]);
    assert_eq!(
        (&report["errors"]["tls"], &report["sockets"]["opened"]),
        (&json!(3), &json!(0))
    );
    assert_eq!(
        report["reasons"],
        json!({ "the server sent the alert CertificateRequired": 3 })
    );
}

#[test]
fn event_streams_and_what_publishes_to_them_go_over_tls() {
    let authority = Authority::new("events");
    let streams: Arc<Mutex<Vec<Output>>> = Arc::default();
    let server = Server::start_secure(
        authority.terms("localhost", &BOTH, false),
        move |peer| -> io::Result<()> {
            loop {
                let request = peer.request()?;
                let mut streams = streams.lock().expect("no panic");
                if request.head.starts_with("GET ") {
                    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")?;
                    streams.push(peer.output());
                    drop(streams);
                    return peer.hold();
                }
                let event = [b"data: ", &request.body[..], b"\n\n"].concat();
                for stream in &*streams {
                    stream.lock().expect("no panic").write_all(&event)?;
                }
                drop(streams);
                peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")?;
            }
        },
    );
    let publish = format!("{}publish", server.url);
    let options = ["--sse", "--publish", &publish, "-k", "-c", "4", "--messages", "30"];
    let report = measure(0, &[&[server.url.as_str()], &options[..]].concat());
    assert_eq!(
        (&report["deliveries"]["received"], &report["complete"]),
        (&json!(120), &json!(4))
    );
}
