//! Connections that send nothing, and too many of them.

use crate::support::{Builder, Client, Server};
use std::io::Write;

const LIMIT: usize = 64;

fn silent(server: &Server, number: usize) -> Vec<Client> {
    (0..number).map(|_| server.connect()).collect()
}

#[test]
fn silent_connections_delay_no_probe() {
    let server = Builder::default().start();
    let silent = silent(&server, LIMIT / 2);

    assert_eq!(200, server.get("/live").status);
    assert!(silent.iter().all(Client::is_silent));
}

#[test]
fn many_more_silent_connections_than_there_may_be_delay_no_probe() {
    let server = Builder::default().start();
    let mut silent = silent(&server, 3 * LIMIT);

    for _ in 0..10 {
        assert_eq!(200, server.get("/live").status);
    }
    assert!(silent[..2 * LIMIT].iter_mut().all(Client::is_dropped));
    assert!(silent.last().is_some_and(Client::is_silent));
}

#[test]
fn a_connection_beyond_the_limit_takes_the_place_of_the_one_that_has_been_silent_for_longest() {
    let server = Builder::default().start();
    let mut silent = silent(&server, LIMIT - 1);

    assert_eq!(200, server.get("/live").status); // so all of them have been accepted
    silent[0].write("GET");
    assert_eq!(200, server.get("/live").status); // by the next turn, the three bytes have been read
    silent.push(server.connect());
    assert_eq!(200, server.get("/live").status);

    assert!(silent[1].is_dropped());
    assert!(silent[0].is_silent() && silent[2].is_silent() && silent[LIMIT - 1].is_silent());
}

#[test]
fn a_connection_with_a_command_does_not_give_way() {
    let server = Builder::default().start();
    let mut asking = server.send("/gc?token=t");
    let (_, mut pipes) = server.question();
    let _silent = silent(&server, 2 * LIMIT);
    assert_eq!(200, server.get("/live").status);
    pipes[0].write_all(b"true").unwrap();
    drop(pipes);

    assert_eq!(200, asking.answer().status);
}
