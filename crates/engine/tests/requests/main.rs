//! Requests and responses over real sockets. The same cases run over a transport in memory, split at every byte:
//! `src/over_memory.rs`.

mod cases;
mod http1;
mod loans;
#[path = "../support/mod.rs"]
mod support;

use std::net::{Shutdown, TcpStream};
use support::{config, Client, Server};

fn connect(server: &Server) -> Client<TcpStream> {
    server.connect()
}

/// Closes the client's half of the connection.
fn half_close(client: &mut Client<TcpStream>) {
    client.stream.shutdown(Shutdown::Write).expect("an open socket");
}

#[test]
fn a_body_that_has_come_is_not_asked_for() {
    let server = Server::start(config(), cases::echo);
    let mut client = connect(&server);
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nho");
    assert_eq!(client.response().text(), "/ memory ho");
}
