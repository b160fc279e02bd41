//! Data that clients send and the app does not take in time: limits on it, delays for its senders, and no lost, mixed
//! or late events.

mod support;

use fairlead_engine::{App, Client as Peer, Config, Event, Events, Exchange};
use fairlead_wire::websocket::Opcode;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use support::web_socket::{bomb, frame, text, Received, WebSocket};
use support::{config, eventually, listen, Server};

const MEGABYTE: usize = 1 << 20;

/// More than the overhead of a message besides its bytes.
const OVERHEAD: usize = 1024;

/// Responds to each message with its length once it may, and notes the largest amount of queued data meanwhile.
#[derive(Default)]
struct Slow {
    may_go_on: AtomicBool,
    keeps_nothing: bool,
    closes_at_once: bool,
    leaves: AtomicBool,
    most_pending: AtomicUsize,
    server: Mutex<Option<Arc<fairlead_engine::Engine>>>,
    messages: AtomicUsize,
    closed: AtomicUsize,
}

impl App for Slow {
    fn call(&self, exchange: &mut Exchange<'_>) {
        if exchange.start_upgrade() {
            let _ = exchange.field(b"sec-websocket-protocol", b"chat");
            if let (Some(client), true) = (exchange.end_upgrade(), self.keeps_nothing) {
                client.want(Events(0));
            }
        } else {
            exchange.respond_plainly(200);
        }
    }

    fn event(&self, client: &Arc<Peer>, event: Event) {
        match event {
            Event::Message { data, .. } => {
                eventually("permission to continue", || self.may_go_on.load(SeqCst));
                let server = self.server.lock().expect("no panic").clone().expect("it was set");
                let pending = server.stats().pending_message_bytes as usize;
                self.most_pending.fetch_max(pending, SeqCst);
                self.messages.fetch_add(1, SeqCst);
                client.write(data.len().to_string().as_bytes(), true);
                if self.closes_at_once {
                    client.close(Some(1000), "enough");
                }
            }
            Event::Close => _ = self.closed.fetch_add(1, SeqCst),
            _ => {}
        }
    }

    fn is_interrupted(&self) -> bool {
        self.leaves.load(SeqCst)
    }
}

fn serve(config: Config, app: Slow) -> (Server, Arc<Slow>) {
    let app = Arc::new(app);
    let server = Server::run(&listen(), config, None, Arc::clone(&app));
    *app.server.lock().expect("no panic") = Some(Arc::clone(&server.engine));
    (server, app)
}

/// Sends everything, although the server does not read all of it at once.
fn send_all(client: &WebSocket, bytes: Vec<u8>) -> std::thread::JoinHandle<()> {
    let mut stream = client.stream.try_clone().expect("a descriptor");
    std::thread::spawn(move || stream.write_all(&bytes).expect("the server reads"))
}

#[test]
fn messages_of_a_client_wait_compressed_where_its_inbox_is_full() {
    let limits = Config {
        client_pending_bytes: 2 * MEGABYTE,
        ..config()
    };
    let (server, app) = serve(limits, Slow::default());
    let mut client = WebSocket::connect_deflating(server.address);
    let sent = send_all(&client, bomb(MEGABYTE).repeat(100));
    eventually("a full inbox", || {
        server.engine.stats().pending_message_bytes >= 2 * MEGABYTE as i64
    });
    app.may_go_on.store(true, SeqCst);
    (0..100).for_each(|_| assert_eq!(client.receive(), text("1048576")));
    sent.join().expect("all was sent");
    let most = app.most_pending.load(SeqCst);
    // The limit shows only after one message too many has arrived, and the app has one.
    assert!(most <= 4 * (MEGABYTE + OVERHEAD), "{most}");
    eventually("no message to wait", || {
        server.engine.stats().pending_message_bytes == 0
    });
}

#[test]
fn small_messages_of_a_client_wait_by_number() {
    let (server, app) = serve(config(), Slow::default());
    let mut client = WebSocket::connect(server.address);
    let sent = send_all(&client, frame(Opcode::Text, b"").repeat(20_000));
    eventually("a first message", || server.engine.stats().pending_message_bytes > 0);
    app.may_go_on.store(true, SeqCst);
    (0..20_000).for_each(|_| assert_eq!(client.receive(), text("0")));
    sent.join().expect("all was sent");
    let most = app.most_pending.load(SeqCst);
    assert!(most <= 4_100 * 64, "{most}");
}

#[test]
fn messages_of_all_clients_together_have_a_limit_and_who_waits_is_read_on_in_turn() {
    let limits = Config {
        messages_pending_bytes: 3 * MEGABYTE,
        max_threads: 2,
        ..config()
    };
    let (server, app) = serve(limits, Slow::default());
    let mut clients: Vec<_> = (0..12).map(|_| WebSocket::connect_deflating(server.address)).collect();
    let sent: Vec<_> = clients
        .iter()
        .map(|client| send_all(client, bomb(MEGABYTE).repeat(20)))
        .collect();
    eventually("full inboxes", || {
        server.engine.stats().pending_message_bytes >= 3 * MEGABYTE as i64
    });
    app.may_go_on.store(true, SeqCst);
    for _ in 0..20 {
        clients
            .iter_mut()
            .for_each(|client| assert_eq!(client.receive(), text("1048576")));
    }
    sent.into_iter().for_each(|sent| sent.join().expect("all was sent"));
    let most = app.most_pending.load(SeqCst);
    assert!(most <= 4 * (MEGABYTE + OVERHEAD), "{most}");
    eventually("no message to wait", || {
        server.engine.stats().pending_message_bytes == 0
    });
    let mut late = WebSocket::connect(server.address);
    late.send(Opcode::Text, b"late");
    assert_eq!(late.receive(), text("4"));
}

#[test]
fn what_is_said_behind_messages_that_wait_is_heard_behind_them() {
    let limits = Config {
        client_pending_bytes: 10_000,
        ..config()
    };
    let (server, app) = serve(limits, Slow::default());
    let mut client = WebSocket::connect_deflating(server.address);
    let mut bytes = bomb(9_000).repeat(50);
    bytes.extend(frame(Opcode::Ping, b"behind"));
    bytes.extend(frame(Opcode::Close, &1000u16.to_be_bytes()));
    client.stream.write_all(&bytes).expect("the server reads");
    eventually("a full inbox", || server.engine.stats().pending_message_bytes >= 10_000);
    app.may_go_on.store(true, SeqCst);
    let mut responses = Vec::new();
    let pong_at = loop {
        match client.receive() {
            Received::Pong(data) => {
                assert_eq!(data, b"behind");
                break responses.len();
            }
            response => responses.push(response),
        }
    };
    // A pong is not queued behind the two messages that were read before it.
    assert!(pong_at >= 45, "the pong came behind {pong_at} responses");
    (pong_at..50).for_each(|_| responses.push(client.receive()));
    assert!(
        responses.iter().all(|response| *response == text("9000")),
        "{responses:?}"
    );
    assert_eq!(client.receive(), Received::Close(Some(1000)));
    assert_eq!(client.receive(), Received::End);
    eventually("the last event", || app.closed.load(SeqCst) == 1);
}

#[test]
fn the_end_of_a_peer_behind_messages_that_wait_is_heard_behind_them() {
    let limits = Config {
        client_pending_bytes: 10_000,
        ..config()
    };
    let (server, app) = serve(limits, Slow::default());
    let mut client = WebSocket::connect_deflating(server.address);
    let bytes = bomb(9_000).repeat(50);
    client.stream.write_all(&bytes).expect("the server reads");
    client
        .stream
        .shutdown(std::net::Shutdown::Write)
        .expect("an open socket");
    eventually("a full inbox", || server.engine.stats().pending_message_bytes >= 10_000);
    assert_eq!(app.closed.load(SeqCst), 0);
    app.may_go_on.store(true, SeqCst);
    eventually("the last event", || app.closed.load(SeqCst) == 1);
    assert_eq!(app.messages.load(SeqCst), 50);
    assert_eq!(server.engine.stats().pending_message_bytes, 0);
}

#[test]
fn a_client_that_is_closed_hears_no_more_and_its_goodbye_is_found() {
    let limits = Config {
        client_pending_bytes: 10_000,
        ..config()
    };
    let app = Slow {
        closes_at_once: true,
        ..Slow::default()
    };
    let (server, app) = serve(limits, app);
    let mut client = WebSocket::connect_deflating(server.address);
    client
        .stream
        .write_all(&bomb(9_000).repeat(50))
        .expect("the server reads");
    eventually("a full inbox", || server.engine.stats().pending_message_bytes >= 10_000);
    app.may_go_on.store(true, SeqCst);
    assert_eq!(client.receive(), text("9000"));
    assert_eq!(client.receive(), Received::Close(Some(1000)));
    client.send(Opcode::Close, &1000u16.to_be_bytes());
    assert_eq!(client.receive(), Received::End);
    eventually("the end", || server.engine.stats().clients == 0);
    let heard = app.messages.load(SeqCst);
    assert!(heard < 5, "{heard} messages were heard");
}

#[test]
fn an_engine_that_drains_ends_clients_whose_messages_wait() {
    let limits = Config {
        client_pending_bytes: 10_000,
        messages_pending_bytes: 20_000,
        ..config()
    };
    let (server, app) = serve(limits, Slow::default());
    let mut clients: Vec<_> = (0..5).map(|_| WebSocket::connect_deflating(server.address)).collect();
    for client in &mut clients {
        client
            .stream
            .write_all(&bomb(9_000).repeat(50))
            .expect("the server reads");
    }
    eventually("full inboxes", || server.engine.stats().pending_message_bytes >= 20_000);
    server.engine.drain();
    app.may_go_on.store(true, SeqCst);
    for client in &mut clients {
        let last = loop {
            match client.receive() {
                Received::Text(_) => {}
                last => break last,
            }
        };
        assert_eq!(last, Received::Close(Some(1001)));
        client.send(Opcode::Close, &1001u16.to_be_bytes());
        assert_eq!(client.receive(), Received::End);
    }
    assert!(server.engine.wait(Some(support::PATIENCE)));
    assert_eq!(server.engine.stats().pending_message_bytes, 0);
}

/// Makes the calling thread poll once: it leaves instead of waiting.
struct OnePoll;

impl App for OnePoll {
    fn call(&self, _: &mut Exchange<'_>) {}

    fn block(&self, _: &mut dyn FnMut()) {}

    fn is_interrupted(&self) -> bool {
        true
    }
}

/// Number of pongs that have arrived and were not received.
fn waiting_pongs(client: &WebSocket) -> usize {
    const PONG_BYTES: usize = 2;
    client.stream.set_nonblocking(true).expect("a socket");
    let bytes = client.stream.peek(&mut [0; 1024]).unwrap_or(0);
    client.stream.set_nonblocking(false).expect("a socket");
    bytes / PONG_BYTES
}

#[test]
fn messages_that_nobody_wants_take_turns_with_other_clients() {
    const MESSAGES: usize = 30;
    let app = Arc::new(Slow {
        keeps_nothing: true,
        ..Slow::default()
    });
    let limits = Config {
        max_pings: 0,
        ..config()
    };
    let server = Server::without_monitor(&listen(), limits, None, Arc::clone(&app));
    let mut clients = [0; 2].map(|_| WebSocket::connect_deflating(server.address));
    // From here on only this thread polls: all data was sent before, and both clients are checked after each poll.
    app.leaves.store(true, SeqCst);
    server.engine.interrupt();
    eventually("no thread", || server.engine.stats().threads == 0);
    // One message is one turn, and the pong shows that it has been inflated.
    let message = [bomb(MEGABYTE / 4), frame(Opcode::Ping, b"")].concat();
    for client in &mut clients {
        client.stream.write_all(&message.repeat(MESSAGES)).expect("it fits");
    }
    let mut polls = 0;
    eventually("all turns", || {
        server.engine.serve(&OnePoll);
        polls += 1;
        let mut turns = 0;
        eventually("as many turns of one as of the other", || {
            turns = waiting_pongs(&clients[0]);
            turns == waiting_pongs(&clients[1])
        });
        assert!(turns <= 2 * polls, "{turns} turns in {polls} polls");
        turns == MESSAGES
    });
    for client in &mut clients {
        (0..MESSAGES).for_each(|_| assert_eq!(client.receive(), Received::Pong(vec![])));
    }
    assert_eq!(server.engine.stats().pending_message_bytes, 0);
}
