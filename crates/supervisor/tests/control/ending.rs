//! The end of a server.

use crate::support::{Builder, PATIENCE};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_response_that_is_on_its_way_is_sent_before_the_end() {
    let mut server = Builder::default().start();
    let mut asking = server.send("/gc-stats?token=t");
    let (_, mut pipes) = server.question();
    let mut silent = server.connect();
    assert_eq!(200, server.get("/live").status); // so the silent one has been accepted
    server.stop();

    assert!(silent.is_dropped());
    assert!(TcpStream::connect(server.address).is_err());
    pipes[0].write_all(b"{}").unwrap();
    drop(pipes);
    assert_eq!("{}", asking.answer().body);
    server.join();
}

#[test]
fn the_end_does_not_wait_for_ruby() {
    let mut builder = Builder::default();
    builder.limits.grace = Duration::from_millis(100);
    builder.limits.ruby = PATIENCE * 2;
    let mut server = builder.start();
    let mut asking = server.send("/gc-stats?token=t");
    let (_, pipes) = server.question();
    let began = Instant::now();
    server.join();

    assert!(began.elapsed() < PATIENCE);
    assert!(asking.is_dropped());
    drop(pipes);
}
