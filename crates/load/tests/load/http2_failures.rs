//! HTTP/2 failures: resets, GOAWAY, closed connections, and servers that speak another protocol.

use crate::http2_peer::{
    answer_all, answered, errors, serving, streams, Http2, CANCEL, DATA, END_STREAM, ENHANCE_YOUR_CALM, NO_ERROR,
    REFUSED_STREAM,
};
use crate::support::{bench, measure, Server, PATIENT};
use crate::terminator::{Authority, Terms, BOTH};
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_stream_that_is_reset_fails_its_request_and_no_other() {
    let count = AtomicU32::new(0);
    let server = serving(move |http2| loop {
        let stream = http2.request()?;
        match count.fetch_add(1, Ordering::SeqCst) {
            2 => http2.reset(stream, CANCEL)?,
            3 => http2.reset(stream, REFUSED_STREAM)?,
            4 => {
                http2.begin(stream)?;
                http2.reset(stream, CANCEL)?;
            }
            5 => http2.reset(stream, 0xbeef)?,
            _ => http2.answer(stream)?,
        }
    });
    let report = measure(2, &[&server.url, "--http2", "--streams", "2", "-c", "1", "-n", "20"]);
    assert_eq!(errors(&report), [("refused".into(), 1), ("reset".into(), 3)]);
    assert_eq!((answered(&report), server.connections()), (16, 1));
    assert_eq!(
        report["http2"]["resets"],
        json!({ "CANCEL": 2, "REFUSED_STREAM": 1, "0xbeef": 1 })
    );
}

#[test]
fn what_a_server_that_goes_away_has_not_looked_at_is_sent_again() {
    let server = serving(|http2| {
        let streams = http2.requests(4)?;
        http2.go_away(streams[1], NO_ERROR)?;
        for stream in &streams[..2] {
            http2.answer(*stream)?;
        }
        http2.hold()
    });
    let report = measure(0, &[&server.url, "--http2", "--streams", "4", "-c", "1", "-d", "0.5"]);
    assert_eq!(errors(&report), []);
    let connections = server.connections() as u64;
    assert!(connections > 2, "a new one each time: {report}");
    // Two on each connection except the last ones: a new connection is opened before the old one has responded, and the
    // time can end at any point.
    let two_each = 2 * (connections - 2)..=2 * connections;
    assert!(two_each.contains(&answered(&report)), "{report}");
    let goaways = report["http2"]["goaways"]["NO_ERROR"].as_u64().unwrap_or(0);
    assert!(goaways + 1 >= connections, "{report}");
}

#[test]
fn a_server_that_goes_away_with_an_error_fails_the_requests() {
    let server = serving(|http2| {
        if http2.number() > 0 {
            return answer_all(http2);
        }
        let streams = http2.requests(3)?;
        http2.go_away(streams[0], ENHANCE_YOUR_CALM)?;
        http2.answer(streams[0])?;
        http2.hold()
    });
    let report = measure(2, &[&server.url, "--http2", "--streams", "3", "-c", "1", "-n", "9"]);
    assert_eq!((errors(&report), answered(&report)), (vec![("goaway".into(), 2)], 7));
    assert_eq!(report["http2"]["goaways"], json!({ "ENHANCE_YOUR_CALM": 1 }));
    let outcome = bench(&[&server.url, "--http2", "--streams", "3", "-c", "1", "-n", "9"]);
    assert!(outcome.stdout.contains("errors     none"), "{}", outcome.stdout);
}

#[test]
fn a_connection_that_is_closed_fails_all_requests_that_wait_on_it() {
    let server = serving(|http2| {
        if http2.number() > 0 {
            return answer_all(http2);
        }
        http2.requests(3).map(drop)
    });
    let report = measure(2, &[&server.url, "--http2", "--streams", "3", "-c", "1", "-n", "9"]);
    assert_eq!((errors(&report), answered(&report)), (vec![("closed".into(), 3)], 6));
}

#[test]
fn a_connection_that_is_cut_fails_them_too() {
    let authority = Authority::new("h2-cut");
    let terms = Terms {
        polite: false,
        ..authority.terms_with("localhost", &BOTH, &["h2"])
    };
    let server = Server::start_secure(terms, |peer| {
        let mut http2 = Http2::greet(peer, &[])?;
        match http2.number() {
            0 => http2.requests(3).map(drop),
            _ => answer_all(&mut http2),
        }
    });
    let cacert = authority.cacert();
    let args = ["--http2", "--cacert", &cacert, "--streams", "3", "-c", "1", "-n", "9"];
    let report = measure(2, &[&[server.url.as_str()][..], &args].concat());
    assert_eq!((errors(&report), answered(&report)), (vec![("closed".into(), 3)], 6));
}

#[test]
fn a_server_that_breaks_the_rules_is_malformed() {
    let server = serving(|http2| {
        if http2.number() > 0 {
            return answer_all(http2);
        }
        let stream = http2.request()?;
        // Content without a head.
        http2.send(DATA, END_STREAM, stream, b"ok")?;
        http2.hold()
    });
    let report = measure(2, &[&server.url, "--http2", "-c", "1", "-n", "5"]);
    assert_eq!((errors(&report), answered(&report)), (vec![("malformed".into(), 1)], 4));
}

#[test]
fn a_late_stream_is_given_up_and_its_connection_is_not() {
    let server = serving(|http2| {
        let late = http2.request()?;
        loop {
            let frame = http2.frame()?;
            assert!(
                frame.stream > late || frame.flags & END_STREAM == 0,
                "only the late one is reset"
            );
            if frame.flags & END_STREAM != 0 && frame.stream > late {
                http2.answer(frame.stream)?;
            }
        }
    });
    let args = [
        "--http2",
        "--streams",
        "2",
        "-c",
        "1",
        "-d",
        "5",
        "--rate",
        "50",
        "--timeout",
        PATIENT,
    ];
    let report = measure(2, &[&[server.url.as_str()][..], &args].concat());
    assert_eq!(
        (errors(&report), server.connections()),
        (vec![("timeout".into(), 1)], 1)
    );
    assert!(answered(&report) > 10, "{report}");
    let served = streams(&report, 0);
    assert!(
        served.iter().all(|&count| count > 0),
        "its lane is used again: {served:?}"
    );
}

#[test]
fn a_silent_connection_is_replaced() {
    let server = serving(|http2| {
        if http2.number() == 0 {
            return http2.hold();
        }
        answer_all(http2)
    });
    // Two timeouts must fit into the time after which the tool gives up: the timeout plus one second.
    let args = ["--http2", "--streams", "2", "-c", "1", "-n", "10", "--timeout", "0.6"];
    let report = measure(2, &[&[server.url.as_str()][..], &args].concat());
    let failed = report["errors"]["timeout"].as_u64().unwrap_or(0);
    // The settings come after the first request, so the connection is silent only from the second round on.
    assert!((2..=4).contains(&failed), "{report}");
    assert_eq!((answered(&report), server.connections()), (10 - failed, 2));
}

#[test]
fn servers_that_speak_something_else_are_one_clear_line() {
    let http1 = Server::start(|peer| {
        peer.head()?;
        peer.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    });
    let closing = Server::start(|peer| peer.head());
    let nonsense = Server::start(|peer| {
        peer.head()?;
        peer.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n more than enough for a frame")?;
        peer.hold()
    });
    for (server, why) in [
        (
            http1,
            "the server responds in HTTP/1.1, so it does not speak HTTP/2 here",
        ),
        (closing, "the server closed the connection instead of speaking HTTP/2"),
        (nonsense, "the server does not speak HTTP/2 here"),
    ] {
        let outcome = bench(&[&server.url, "--http2", "-c", "3", "--streams", "5"]);
        let expected = format!("fairlead-load: cannot connect to {}: {why}\n", server.url);
        assert_eq!((outcome.status, outcome.stderr), (1, expected));
    }
}

#[test]
fn over_tls_the_server_has_to_agree_on_it() {
    let authority = Authority::new("h2");
    let run = |protocols: &[&str]| {
        let terms = authority.terms_with("localhost", &BOTH, protocols);
        let server = Server::start_secure(terms, |peer| answer_all(&mut Http2::greet(peer, &[])?));
        let cacert = authority.cacert();
        bench(&[
            &server.url,
            "--http2",
            "--cacert",
            &cacert,
            "--streams",
            "4",
            "-n",
            "40",
            "-c",
            "2",
            "--json",
        ])
    };
    let agreed = run(&["http/1.1", "h2"]);
    assert_eq!((agreed.status, answered(&agreed.json())), (0, 40), "{agreed:?}");
    assert_eq!(agreed.json()["tls"]["full"], 2);
    for (protocols, why) in [
        (
            &[][..],
            "the server does not speak HTTP/2 here: ALPN agreed on nothing, not on h2",
        ),
        (&["http/1.1"], "the server accepts no protocol that we offer by ALPN"),
    ] {
        let refused = run(protocols);
        assert_eq!((refused.status, refused.stderr.lines().count()), (1, 1), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}
