//! Accepted offers of permessage-deflate, and their results (RFC 7692 §5, §7.1).

use crate::support::get;
use fairlead_wire::websocket::{accept_response, negotiate, offer, Context, Deflate};

/// The agreed parameters: `s` and `c` for a side that keeps no context, then the bits of server and client.
fn told(deflate: Deflate) -> String {
    let mark = |no_context, mark| if no_context { mark } else { "" };
    format!(
        "{}{}{} {}",
        mark(deflate.server_no_context, "s"),
        mark(deflate.client_no_context, "c"),
        deflate.server_bits,
        deflate.client_bits
    )
}

/// The agreement on the offers in these values of the field, and the response.
fn negotiated(values: &[&str], context: Context) -> Option<(String, String)> {
    let lines: Vec<String> = values
        .iter()
        .map(|value| format!("Sec-WebSocket-Extensions: {value}"))
        .collect();
    let (head, bytes) = get(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    negotiate(&head, &bytes, context).map(|(deflate, answer)| (told(deflate), answer))
}

/// An offer, and its result if contexts are kept: the agreement, and the response after the name.
const ACCEPTED: [(&str, &str, &str); 30] = [
    ("permessage-deflate", "15 15", ""),
    ("PerMessage-Deflate", "15 15", ""),
    (" permessage-deflate ", "15 15", ""),
    (
        "permessage-deflate; server_no_context_takeover",
        "s15 15",
        "; server_no_context_takeover",
    ),
    (
        "permessage-deflate; client_no_context_takeover",
        "c15 15",
        "; client_no_context_takeover",
    ),
    (
        "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
        "sc15 15",
        "; server_no_context_takeover; client_no_context_takeover",
    ),
    ("permessage-deflate; client_max_window_bits", "15 15", ""),
    ("permessage-deflate; client_max_window_bits=15", "15 15", ""),
    ("permessage-deflate; client_max_window_bits=8", "15 8", ""),
    ("permessage-deflate; client_max_window_bits=\"10\"", "15 10", ""),
    ("permessage-deflate;client_max_window_bits=9", "15 9", ""),
    (
        "permessage-deflate; server_max_window_bits=9",
        "9 15",
        "; server_max_window_bits=9",
    ),
    (
        "permessage-deflate; server_max_window_bits=10",
        "10 15",
        "; server_max_window_bits=10",
    ),
    (
        "permessage-deflate; server_max_window_bits=11",
        "11 15",
        "; server_max_window_bits=11",
    ),
    (
        "permessage-deflate; server_max_window_bits=12",
        "12 15",
        "; server_max_window_bits=12",
    ),
    (
        "permessage-deflate; server_max_window_bits=13",
        "13 15",
        "; server_max_window_bits=13",
    ),
    (
        "permessage-deflate; server_max_window_bits=14",
        "14 15",
        "; server_max_window_bits=14",
    ),
    (
        "permessage-deflate; server_max_window_bits=15",
        "15 15",
        "; server_max_window_bits=15",
    ),
    (
        "permessage-deflate; server_max_window_bits=\"12\"",
        "12 15",
        "; server_max_window_bits=12",
    ),
    (
        "permessage-deflate; server_max_window_bits=\"1\\2\"",
        "12 15",
        "; server_max_window_bits=12",
    ),
    (
        "permessage-deflate ;\tserver_max_window_bits=12 ",
        "12 15",
        "; server_max_window_bits=12",
    ),
    (
        "permessage-deflate; server_max_window_bits=10; client_max_window_bits=11; server_no_context_takeover",
        "s10 11",
        "; server_no_context_takeover; server_max_window_bits=10",
    ),
    // The first acceptable offer.
    ("x-webkit-deflate-frame, permessage-deflate", "15 15", ""),
    (
        "permessage-bzip2; level=9, permessage-deflate; client_max_window_bits=9",
        "15 9",
        "",
    ),
    (
        "foo; bar=\"a, permessage-deflate; b\", permessage-deflate; client_max_window_bits=12",
        "15 12",
        "",
    ),
    (
        "permessage-deflate; server_max_window_bits=10, permessage-deflate",
        "10 15",
        "; server_max_window_bits=10",
    ),
    (
        "permessage-deflate; server_max_window_bits=8, permessage-deflate",
        "15 15",
        "",
    ),
    (
        "permessage-deflate; unknown, permessage-deflate; client_max_window_bits",
        "15 15",
        "",
    ),
    (", ,permessage-deflate,", "15 15", ""),
    (
        "permessage-deflate, permessage-deflate; server_no_context_takeover",
        "15 15",
        "",
    ),
];

/// Declined offers, each alone.
const DECLINED: [&str; 38] = [
    "",
    ",",
    ";",
    "foo",
    "permessage-deflat",
    "permessage-deflate2",
    "x-permessage-deflate",
    "permessage deflate",
    "\"permessage-deflate\"",
    "permessage-deflate=1",
    "permessage-deflate;",
    "permessage-deflate;;server_no_context_takeover",
    "permessage-deflate; unknown",
    "permessage-deflate; unknown=1",
    "permessage-deflate; server_no_context_takeover; unknown",
    "permessage-deflate; permessage-deflate",
    "permessage-deflate; server_no_context_takeover=1",
    "permessage-deflate; server_no_context_takeover=15",
    "permessage-deflate; server_no_context_takeover=true",
    "permessage-deflate; client_no_context_takeover=15",
    "permessage-deflate; client_no_context_takeover=",
    "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
    "permessage-deflate; client_no_context_takeover; CLIENT_no_context_takeover",
    "permessage-deflate; server_max_window_bits=10; server_max_window_bits=10",
    "permessage-deflate; client_max_window_bits; client_max_window_bits",
    "permessage-deflate; client_max_window_bits; client_max_window_bits=10",
    "permessage-deflate; server_max_window_bits",
    "permessage-deflate; server_max_window_bits=",
    "permessage-deflate; server_max_window_bits=7",
    "permessage-deflate; server_max_window_bits=16",
    "permessage-deflate; server_max_window_bits=08",
    "permessage-deflate; server_max_window_bits=+9",
    "permessage-deflate; server_max_window_bits=1 0",
    "permessage-deflate; server_max_window_bits = 10",
    "permessage-deflate; client_max_window_bits=115",
    "permessage-deflate; client_max_window_bits=\"10",
    "permessage-deflate; client_max_window_bits=x",
    // RFC 7692 permits it, but the compressor does not support it.
    "permessage-deflate; server_max_window_bits=8",
];

#[test]
fn offers_are_accepted_with_what_they_ask_for() {
    for (value, agreed, answer) in ACCEPTED {
        let expected = (agreed.to_owned(), format!("permessage-deflate{answer}"));
        assert_eq!(negotiated(&[value], Context::Kept), Some(expected), "{value}");
    }
}

#[test]
fn without_context_both_sides_are_told_so() {
    for (value, agreed, answer) in ACCEPTED {
        let bits = agreed.trim_start_matches(['s', 'c']);
        let rest = ["; server_no_context_takeover", "; client_no_context_takeover"]
            .iter()
            .fold(answer.to_owned(), |rest, parameter| rest.replace(parameter, ""));
        let answer = format!("permessage-deflate; server_no_context_takeover; client_no_context_takeover{rest}");
        let expected = (format!("sc{bits}"), answer);
        assert_eq!(negotiated(&[value], Context::PerMessage), Some(expected), "{value}");
    }
}

#[test]
fn what_is_unknown_repeated_or_malformed_is_declined_alone() {
    for value in DECLINED {
        for context in [Context::PerMessage, Context::Kept] {
            assert_eq!(negotiated(&[value], context), None, "{value}");
            // The next line has another offer, for any offer in this one.
            let (agreed, _) = negotiated(&[value, "permessage-deflate"], context).expect(value);
            assert!(agreed.ends_with("15 15"), "{value}: {agreed}");
        }
    }
}

#[test]
fn without_the_field_nothing_is_negotiated() {
    assert_eq!(negotiated(&[], Context::Kept), None);
    let (head, bytes) = get(&[
        "Sec-WebSocket-Extension: permessage-deflate",
        "Extensions: permessage-deflate",
    ]);
    assert_eq!(negotiate(&head, &bytes, Context::Kept), None);
}

#[test]
fn several_lines_are_one_list() {
    let lines = [
        "foo, permessage-deflate; server_max_window_bits=8",
        "bar",
        "permessage-deflate; server_max_window_bits=9",
    ];
    let expected = (
        "9 15".to_owned(),
        "permessage-deflate; server_max_window_bits=9".to_owned(),
    );
    assert_eq!(negotiated(&lines, Context::Kept), Some(expected));
}

#[test]
fn both_sides_agree_on_the_offer_of_a_client() {
    for asked in [Context::PerMessage, Context::Kept] {
        for given in [Context::PerMessage, Context::Kept] {
            let (head, bytes) = get(&[&format!("Sec-WebSocket-Extensions: {}", offer(asked))]);
            let (server, answer) = negotiate(&head, &bytes, given).expect("acceptable");
            assert_eq!(
                accept_response(answer.as_bytes(), asked),
                Some(server),
                "{asked:?} {given:?}"
            );
            let alone = asked == Context::PerMessage || given == Context::PerMessage;
            assert_eq!((server.server_no_context, server.client_no_context), (alone, alone));
        }
    }
}

#[test]
fn a_client_takes_only_answers_it_can_keep_to() {
    let agreed = |answer: &str, context| accept_response(answer.as_bytes(), context).map(told);
    assert_eq!(agreed("permessage-deflate", Context::Kept), Some("15 15".into()));
    assert_eq!(
        agreed("permessage-deflate; client_max_window_bits=9", Context::Kept),
        Some("15 9".into())
    );
    assert_eq!(
        agreed("permessage-deflate; server_max_window_bits=8", Context::Kept),
        Some("8 15".into())
    );
    // If the client offers it, the client drops its own context even without confirmation.
    let half = "permessage-deflate; server_no_context_takeover";
    assert_eq!(agreed(half, Context::PerMessage), Some("sc15 15".into()));
    for answer in [
        "",
        "foo",
        "permessage-deflate, permessage-deflate",
        "permessage-deflate, foo",
        "permessage-deflate; unknown",
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=8",
    ] {
        assert_eq!(agreed(answer, Context::Kept), None, "{answer}");
    }
    assert_eq!(agreed("permessage-deflate", Context::PerMessage), None);
}
