//! HTTP/2: the cases of `tests/requests`, many concurrent requests over one connection, and abusive clients.

#[path = "../requests/cases.rs"]
mod cases;
#[path = "../support/mod.rs"]
mod support;

mod allowances;
mod attacks;
mod bridge;
mod budgets;
mod clients;
mod heads;
mod sessions;
mod streams;
mod turns;
mod windows;

use bridge::Bridge;
use support::http2::Http2Client;
use support::{Client, Server};

fn connect(server: &Server) -> Client<Bridge> {
    Client::over(Bridge::new(Http2Client::connect(server.address)))
}
