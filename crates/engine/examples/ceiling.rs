//! The native ceiling: the engine with a fixed response of 121 bytes and no Ruby. `bin/bench` compares with it what the
//! Ruby part costs. Usage: `ceiling PORT THREADS`.

use fairlead_engine::pubsub::Hub;
use fairlead_engine::{
    App, Config, Context, Descriptors, Engine, Exchange, FilesConfig, Listener, Logs, Origin, Overflow, RequestTotals,
};
use std::net::TcpListener;
use std::time::Duration;

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
    engine.start(true)?;
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
        head_timeout: Duration::from_secs(30),
        head_max_bytes: 65_536,
        head_max_fields: 100,
        target_max_bytes: 16_384,
        body_timeout: Duration::from_secs(20),
        body_min_rate: 500,
        body_max_bytes: 1 << 30,
        body_memory_bytes: 114_688,
        temp_dir: std::env::temp_dir(),
        keep_alive_timeout: Duration::from_secs(65),
        write_timeout: Duration::from_secs(30),
        write_min_rate: 500,
        response_memory_bytes: 262_144,
        response_disk_bytes: 1 << 30,
        response_memory_total_bytes: 128 << 20,
        response_disk_total_bytes: 2 << 30,
        max_connections: 10_000,
        descriptors: Descriptors::of_process(10_000),
        request_totals: RequestTotals::new(1 << 28, 1 << 32),
        trim_memory: || {},
        waiting_room: false,
        early_hints: false,
        message_max_bytes: 1 << 20,
        client_pending_bytes: 1 << 20,
        client_overflow: Overflow::Close,
        messages_pending_bytes: 64 << 20,
        ping_interval: 40,
        max_pings: 100,
        deflate: Some(Context::PerMessage),
        deflate_min_bytes: 1024,
        files: FilesConfig::default(),
        compression: None,
    }
}
