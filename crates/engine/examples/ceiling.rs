//! The native ceiling: the engine with a fixed response of 121 bytes and no Ruby. `bin/bench` compares with it what the
//! Ruby part costs. Usage: `ceiling PORT THREADS`.

use fairlead_engine::pubsub::Hub;
use fairlead_engine::{App, Config, Descriptors, Engine, Exchange, Listener, Logs, Origin};
use std::net::TcpListener;

#[path = "../tests/support/mod.rs"]
mod support;

struct Fixed;

impl App for Fixed {
    fn call(&self, exchange: &mut Exchange<'_>) {
        exchange.start(200);
        let _ = exchange.field(b"content-type", b"text/plain");
        exchange.end_head(Some(121));
        let _ = exchange.write(&[b'x'; 121]);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().unwrap_or_default().parse().unwrap_or(0);
    let threads: usize = arguments.next().unwrap_or_default().parse().unwrap_or(1);
    let socket = TcpListener::bind(("127.0.0.1", port))?;
    let address = socket.local_addr()?;
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    let origin = Origin {
        scheme: "http".into(),
        host: "127.0.0.1".into(),
        port: address.port(),
        unix: false,
    };
    let engine = Engine::new(
        config(threads),
        vec![Listener::new(socket.into(), origin)?],
        Logs::default(),
        None,
        Hub::new(None)?,
    )?;
    engine.start(Box::new(support::NoLock { tells_waits: true }))?;
    println!("listening on http://{address}");
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| engine.serve(&Fixed));
        }
    });
    Ok(())
}

fn config(threads: usize) -> Config {
    Config {
        min_threads: threads,
        max_threads: threads,
        max_connections: 10_000,
        descriptors: Descriptors::of_process(10_000),
        ..support::config()
    }
}
