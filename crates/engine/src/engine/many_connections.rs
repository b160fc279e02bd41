//! Idle connections cost the others nothing: the same work with few and with many of them, in processor time.

use crate::agenda::MOST_OF_A_TURN;
use crate::clock::{least_time, Millis};
use crate::http2::Http2Connection;
use crate::realtime::Client;
use crate::support::http2::Http2Client;
use crate::support::web_socket::{accept, WebSocket};
use crate::support::{config, eventually, Server};
use std::sync::Arc;
use std::time::Duration;

const FEW: usize = 3;
const MANY: usize = 300;

/// Asserts that work takes about the same time with few and with many connections.
fn assert_constant(what: &str, time: impl Fn(usize) -> Duration) {
    let (few, many) = (time(FEW), time(MANY));
    assert!(
        many < few * 5 + Duration::from_micros(5),
        "{what}: {many:?} with {MANY}, {few:?} with {FEW}"
    );
}

fn with_http2(count: usize, code: impl FnOnce(&Server, Vec<Arc<Http2Connection>>) -> Duration) -> Duration {
    let server = Server::start(config(), |exchange| exchange.respond_plainly(200));
    let mut clients: Vec<_> = (0..count).map(|_| Http2Client::connect(server.address)).collect();
    clients.iter_mut().for_each(Http2Client::wait_for_settings);
    let all = server.engine.parts.http2.http2_connections.all();
    assert_eq!(all.len(), count);
    code(&server, all)
}

#[test]
fn a_search_for_passed_deadlines_passes_no_idle_http2_connection() {
    let time = |count| {
        with_http2(count, |server, _| {
            let connections = &server.engine.parts.http2.http2_connections;
            let mut now = Millis::now();
            least_time(|| {
                now = now + Duration::from_millis(300);
                connections.begin_check(None, now);
                assert!(connections.next_expired(now).is_none());
            })
        })
    };
    assert_constant("a check", time);
}

#[test]
fn a_turn_ends_a_part_of_many_http2_connections_that_have_expired() {
    with_http2(MANY, |server, _| {
        let http2 = &server.engine.parts.http2;
        let later = Millis::now() + Duration::from_secs(24 * 3600);
        assert_eq!(http2.expire(later), later, "some of them are left for the next turn");
        eventually("none is left", || http2.expire(later) > later);
        Duration::ZERO
    });
}

#[test]
fn a_turn_checks_a_part_of_many_clients_with_passed_deadlines() {
    let server = Server::start(config(), accept);
    let _sockets: Vec<_> = (0..MANY).map(|_| WebSocket::connect(server.address)).collect();
    let realtime = &server.engine.parts.services.realtime;
    eventually("all are there", || realtime.clients().all().len() == MANY);
    realtime
        .clients()
        .all()
        .iter()
        .for_each(|client| client.set_timeout(60));
    let later = Millis::now() + Duration::from_secs(24 * 3600);
    let check = || realtime.clients().tick(realtime, later);
    assert_eq!(check(), later, "some of them are left for the next turn");
    eventually("none is left", || check() > later);
}

#[test]
fn a_look_at_one_http2_connection_is_no_look_at_the_others() {
    with_http2(FEW, |server, all| {
        let connections = &server.engine.parts.http2.http2_connections;
        // The poller may take it first.
        eventually("it alone is looked at, once", || {
            (0..3).for_each(|_| all[0].look_later());
            let looked_at = connections.to_look_at();
            assert!(looked_at.iter().all(|connection| connection.key() == all[0].key()));
            looked_at.len() == 1
        });
        Duration::ZERO
    });
    let time = |count| {
        with_http2(count, |server, all| {
            let connections = &server.engine.parts.http2.http2_connections;
            least_time(|| {
                all[0].look_later();
                connections.to_look_at();
            })
        })
    };
    assert_constant("to_look_at", time);
}

#[test]
fn each_http2_client_is_told_once_that_the_worker_leaves() {
    with_http2(FEW, |server, all| {
        let connections = &server.engine.parts.http2.http2_connections;
        let told = || connections.to_tell().len();
        assert_eq!([told(), told()], [FEW, 0]);
        connections.insert(&all[0]);
        assert_eq!([told(), told()], [1, 0], "a new one");
        Duration::ZERO
    });
}

#[test]
fn a_deadline_of_one_client_is_no_check_of_the_others() {
    let time = |count| {
        let server = Server::start(config(), accept);
        let _sockets: Vec<_> = (0..count).map(|_| WebSocket::connect(server.address)).collect();
        let realtime = &server.engine.parts.services.realtime;
        eventually("all are there", || realtime.clients().all().len() == count);
        let all = realtime.clients().all();
        let mut clients = all.iter().cycle();
        let mut tick = || {
            let client: &Arc<Client> = clients.next().expect("a client");
            client.set_timeout(1);
            realtime
                .clients()
                .tick(realtime, Millis::now() + Duration::from_millis(1_100));
            client.set_timeout(1_000);
        };
        // The first ones may find the deadlines of the beginning.
        (0..count.div_ceil(MOST_OF_A_TURN)).for_each(|_| tick());
        least_time(tick)
    };
    assert_constant("tick", time);
}
