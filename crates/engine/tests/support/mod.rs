//! A real engine on port 0 with a closure as its app, and a client that reads responses.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    reason = "each test file uses a part"
)]

pub mod frames;
pub mod http2;
pub mod tls;
pub mod web_socket;

use fairlead_engine::pubsub::Hub;
use fairlead_engine::{
    App, Config, Context, Descriptors, Engine, Exchange, FairBy, FilesConfig, ForwardedFields, HttpsRedirect, Listener,
    Lock, LockUse, LogSample, Logs, Membership, Origin, Overflow, ProxyVersions, RemoteAddress, RequestTotals,
    Scoreboard, ServerTiming, SharedQueues, TrustedProxies,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub const PATIENCE: Duration = Duration::from_secs(30);

type Call = dyn Fn(&mut Exchange<'_>) + Send + Sync;

struct Closure {
    call: Arc<Call>,
}

impl App for Closure {
    fn call(&self, exchange: &mut Exchange<'_>) {
        (self.call)(exchange);
    }
}

/// A language without a lock.
pub struct NoLock {
    pub tells_waits: bool,
}

impl Lock for NoLock {
    fn tells_waits(&self) -> bool {
        self.tells_waits
    }

    fn look(&self, _: usize) -> LockUse {
        LockUse {
            switches: 0,
            is_wanted: false,
        }
    }

    fn claim(&self, _: LockUse) {}
}

/// One engine with its threads; drained and joined at the end.
pub struct Server {
    pub engine: Arc<Engine>,
    pub hub: Arc<Hub>,
    pub totals: Arc<RequestTotals>,
    pub descriptors: Arc<Descriptors>,
    pub address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

pub fn config() -> Config {
    Config {
        min_threads: 1,
        max_threads: 1,
        time_slice: Duration::ZERO,
        handshake_timeout: Duration::from_secs(10),
        max_handshakes: 1_000,
        http2: true,
        http2_websockets: true,
        http2_streams: 100,
        head_timeout: Duration::from_secs(30),
        head_max_bytes: 16_384,
        head_max_fields: 64,
        target_max_bytes: 4_096,
        body_timeout: Duration::from_secs(20),
        body_min_rate: 500,
        body_max_bytes: 1 << 20,
        body_memory_bytes: 4_096,
        temp_dir: std::env::temp_dir(),
        supported_http_methods: Vec::new(),
        remote_address: RemoteAddress::Socket,
        trusted_proxies: TrustedProxies::default(),
        forwarded_fields: ForwardedFields::All,
        rack_url_scheme: None,
        redirect_to_https: HttpsRedirect::Never,
        request_start: true,
        request_timeout: Duration::ZERO,
        request_timeout_for: Vec::new(),
        stuck_after: Duration::ZERO,
        queue_timeout: Duration::ZERO,
        queue_limit: 0,
        queue_target: Duration::ZERO,
        queue_interval: Duration::from_millis(100),
        server_timing: ServerTiming::Never,
        access_log_skip: Vec::new(),
        access_log_sample: LogSample::default(),
        metrics_skip: Vec::new(),
        slow_request: Duration::ZERO,
        hsts: None,
        enable_keep_alives: true,
        max_keep_alive: 0,
        keep_alive_timeout: Duration::from_secs(65),
        write_timeout: Duration::from_secs(30),
        write_min_rate: 500,
        response_memory_bytes: 65_536,
        response_disk_bytes: 1 << 30,
        response_memory_total_bytes: 128 << 20,
        response_disk_total_bytes: 2 << 30,
        max_connections: 1_000,
        descriptors: Descriptors::with(1_000, 1_000),
        request_totals: RequestTotals::new(1 << 28, 1 << 32),
        trim_memory: || {},
        resident_memory: || 0,
        fair_by: FairBy::Connection,
        priority_paths: Vec::new(),
        waiting_room: true,
        acme_challenges: None,
        early_hints: false,
        message_max_bytes: 1 << 20,
        client_pending_bytes: 1 << 20,
        client_overflow: Overflow::Close,
        messages_pending_bytes: 64 << 20,
        client_pending_messages: 4096,
        max_subscriptions: 10_000,
        max_subscriptions_total: 1_000_000,
        max_patterns: 10_000,
        history_messages: 100,
        history_time: Duration::from_secs(300),
        ping_interval: 40,
        max_pings: 100,
        generation: 0,
        resume_rate: 0,
        drain_spread: Duration::ZERO,
        deflate: Some(Context::PerMessage),
        deflate_min_bytes: 1024,
        files: FilesConfig::default(),
        compression: None,
    }
}

/// A socket on port 0 that several servers may share. Sent bytes arrive at once, as with a real server.
pub fn listen() -> TcpListener {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port");
    rustix::net::sockopt::set_tcp_nodelay(&socket, true).expect("a socket");
    socket
}

/// A waiting room for several servers.
pub fn shared_queues() -> (Arc<SharedQueues>, &'static Scoreboard) {
    let scoreboard: &'static Scoreboard = Box::leak(Box::default());
    (
        Arc::new(SharedQueues::new(scoreboard).expect("a socket pair")),
        scoreboard,
    )
}

fn listener(socket: &TcpListener, scheme: &str) -> Listener {
    let origin = Origin {
        scheme: scheme.into(),
        host: "127.0.0.1".into(),
        // Workers know an address by this port; here each worker has its own socket.
        port: 80,
        unix: false,
    };
    Listener::new(socket.try_clone().expect("a descriptor").into(), origin).expect("a listener")
}

impl Server {
    pub fn start(config: Config, call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> Server {
        Server::on(&listen(), config, None, Arc::new(call))
    }

    pub fn on(
        socket: &TcpListener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        call: Arc<Call>,
    ) -> Server {
        Server::run(socket, config, shared, Arc::new(Closure { call }))
    }

    pub fn run<A: App + Send + Sync + 'static>(
        socket: &TcpListener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        app: Arc<A>,
    ) -> Server {
        Server::listening(listener(socket, "http"), config, shared, app)
    }

    /// Without the native threads: only the threads that serve the app poll.
    pub fn without_monitor<A: App + Send + Sync + 'static>(
        socket: &TcpListener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        app: Arc<A>,
    ) -> Server {
        Server::at(listener(socket, "http"), config, shared, app)
    }

    /// Does the same as [`Server::on`], with TLS.
    pub fn with_tls(
        socket: &TcpListener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        call: Arc<Call>,
    ) -> Server {
        Server::listening(
            listener(socket, "https").with_tls(tls::server()),
            config,
            shared,
            Arc::new(Closure { call }),
        )
    }

    /// Behind a proxy that uses the PROXY protocol, followed by TLS or not.
    pub fn behind_proxy(
        (versions, has_tls): (ProxyVersions, bool),
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static,
    ) -> Server {
        let socket = listen();
        let listener = match has_tls {
            true => listener(&socket, "https").with_tls(tls::server()),
            false => listener(&socket, "http"),
        };
        let app = Arc::new(Closure { call: Arc::new(call) });
        Server::listening(listener.with_proxy_protocol(versions), config, shared, app)
    }

    fn listening<A: App + Send + Sync + 'static>(
        listener: Listener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        app: Arc<A>,
    ) -> Server {
        let server = Server::at(listener, config, shared, app);
        server
            .engine
            .start(Box::new(NoLock { tells_waits: false }))
            .expect("a monitor");
        server
    }

    fn at<A: App + Send + Sync + 'static>(
        listener: Listener,
        config: Config,
        shared: Option<(Arc<SharedQueues>, usize)>,
        app: Arc<A>,
    ) -> Server {
        let membership = shared.map(|(queues, slot)| Membership::Worker(queues, slot));
        Server::as_member(listener, config, membership, app)
    }

    /// Counts in a slot of the scoreboard, and shares nothing else with other servers.
    pub fn alone(
        (scoreboard, slot): (&'static Scoreboard, usize),
        config: Config,
        call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static,
    ) -> Server {
        let (listener, call) = (listener(&listen(), "http"), Arc::new(call));
        Server::as_member(
            listener,
            config,
            Some(Membership::Alone(scoreboard, slot)),
            Arc::new(Closure { call }),
        )
    }

    fn as_member<A: App + Send + Sync + 'static>(
        listener: Listener,
        config: Config,
        membership: Option<Membership>,
        app: Arc<A>,
    ) -> Server {
        let hub = Hub::new(None).expect("a hub");
        Server::with_hub(listener, config, membership, app, hub)
    }

    /// With the native threads, and a hub that other servers may reach.
    pub fn publishing<A: App + Send + Sync + 'static>(
        socket: &TcpListener,
        config: Config,
        shared: (Arc<SharedQueues>, usize),
        app: Arc<A>,
        hub: Arc<Hub>,
    ) -> Server {
        let membership = Some(Membership::Worker(shared.0, shared.1));
        let server = Server::with_hub(listener(socket, "http"), config, membership, app, hub);
        let lock = Box::new(NoLock { tells_waits: false });
        server.engine.start(lock).expect("a monitor");
        server
    }

    fn with_hub<A: App + Send + Sync + 'static>(
        listener: Listener,
        config: Config,
        membership: Option<Membership>,
        app: Arc<A>,
        hub: Arc<Hub>,
    ) -> Server {
        let address = listener.address().expect("an address");
        let (count, totals) = (config.max_threads, Arc::clone(&config.request_totals));
        let descriptors = Arc::clone(&config.descriptors);
        hub.start().expect("a dispatcher");
        let engine =
            Engine::new(config, vec![listener], Logs::default(), membership, Arc::clone(&hub)).expect("an engine");
        let threads = (0..count)
            .map(|_| {
                let (engine, app) = (Arc::clone(&engine), Arc::clone(&app));
                std::thread::spawn(move || engine.serve(&*app))
            })
            .collect();
        Server {
            engine,
            hub,
            totals,
            descriptors,
            address,
            threads,
        }
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.engine.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        self.hub.stop();
    }
}

/// A client that reads responses from a socket, or from another transport.
pub struct Client<S = TcpStream> {
    pub stream: S,
    buffer: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
        Client::over(stream)
    }
}

impl<S: Read + Write> Client<S> {
    /// A client of the peer of `stream`, which must not wait for ever.
    pub fn over(stream: S) -> Client<S> {
        Client {
            stream,
            buffer: Vec::new(),
        }
    }

    pub fn send(&mut self, text: &str) -> &mut Client<S> {
        self.stream.write_all(text.as_bytes()).expect("the server reads");
        self
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        self.response()
    }

    /// The next response; it must have a content-length or be chunked.
    pub fn response(&mut self) -> Response {
        self.response_to("GET")
    }

    /// The next response, to a request with this method.
    pub fn response_to(&mut self, method: &str) -> Response {
        loop {
            if let Some(response) = self.take_answer(method != "HEAD") {
                return response;
            }
            assert!(
                self.fill() > 0,
                "the server closed early: {:?}",
                String::from_utf8_lossy(&self.buffer)
            );
        }
    }

    fn take_answer(&mut self, has_body: bool) -> Option<Response> {
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        let end = text.find("\r\n\r\n")? + 4;
        let head = text[..end].to_string();
        let status = head[9..12].parse().expect("a status");
        if has_body && head.contains("\r\ntransfer-encoding: chunked\r\n") {
            let (body, length) = chunks(&self.buffer[end..])?;
            self.buffer.drain(..end + length);
            return Some(Response { status, head, body });
        }
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ").filter(|_| has_body))
            .map_or(0, |length| length.parse().expect("a length"));
        if self.buffer.len() < end + length {
            return None;
        }
        let body = self.buffer[end..end + length].to_vec();
        self.buffer.drain(..end + length);
        Some(Response { status, head, body })
    }

    fn fill(&mut self) -> usize {
        let mut bytes = [0; 65_536];
        let count = self.stream.read(&mut bytes).expect("a response in time");
        self.buffer.extend_from_slice(&bytes[..count]);
        count
    }

    /// Reads until the server closes; a reset counts as a close.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = [0; 65_536];
        while let Ok(count @ 1..) = self.stream.read(&mut bytes) {
            self.buffer.extend_from_slice(&bytes[..count]);
        }
        std::mem::take(&mut self.buffer)
    }

    pub fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0))
    }
}

/// The data of a complete chunked body, and its length with the framing.
fn chunks(bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut data, mut done) = (Vec::new(), 0);
    loop {
        let line = bytes[done..].windows(2).position(|end| end == b"\r\n")?;
        let size = std::str::from_utf8(&bytes[done..done + line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        done += line + 2;
        data.extend_from_slice(bytes.get(done..done + size)?);
        assert_eq!(bytes.get(done + size..done + size + 2)?, b"\r\n");
        done += size + 2;
        if size == 0 {
            return Some((data, done));
        }
    }
}

/// Responds with a text.
pub fn reply(exchange: &mut Exchange<'_>, text: &str) {
    exchange.start(200);
    exchange.end_head(Some(text.len() as u64));
    let _ = exchange.write(text.as_bytes());
}

pub fn path(exchange: &Exchange<'_>) -> String {
    String::from_utf8_lossy(exchange.request().target()).into_owned()
}

/// Waits until `holds` returns true.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "it did not happen in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Counts the threads that are in a section at once.
#[derive(Default)]
pub struct Crowd {
    now: AtomicUsize,
    pub most: AtomicUsize,
}

impl Crowd {
    pub fn enter(&self) {
        self.most.fetch_max(self.now.fetch_add(1, SeqCst) + 1, SeqCst);
    }

    pub fn leave(&self) {
        self.now.fetch_sub(1, SeqCst);
    }

    pub fn count(&self) -> usize {
        self.now.load(SeqCst)
    }
}
