//! Requests that wait because the server is paused.

mod support;

use fairlead_engine::{Config, Scoreboard, SharedQueues};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use support::http2::{get, Http2Client};
use support::*;

const MS: Duration = Duration::from_millis(1);
const MINUTE: Duration = Duration::from_secs(60);

/// A worker that notes the paths that it has served.
struct Paused {
    server: Server,
    scoreboard: &'static Scoreboard,
    queues: Arc<SharedQueues>,
    served: Arc<Mutex<Vec<String>>>,
}

impl Paused {
    /// It is paused from its start.
    fn start(config: Config, wait: Duration) -> Paused {
        let (queues, scoreboard) = shared_queues();
        scoreboard.pause.begin(wait, MINUTE);
        let served = Arc::<Mutex<Vec<String>>>::default();
        let server = worker(config, &queues, 0, &served);
        Paused {
            server,
            scoreboard,
            queues,
            served,
        }
    }

    /// A client that has sent a request, once it waits as one of `count`.
    fn waiting(&self, path: &str, count: i64) -> Client {
        let mut client = self.server.connect();
        client.send(&format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        eventually("the request waits", || self.server.engine.stats().queued == count);
        client
    }

    fn served(&self) -> Vec<String> {
        self.served.lock().expect("no panic").clone()
    }
}

fn worker(config: Config, queues: &Arc<SharedQueues>, slot: usize, served: &Arc<Mutex<Vec<String>>>) -> Server {
    let seen = Arc::clone(served);
    let call = move |exchange: &mut fairlead_engine::Exchange<'_>| {
        seen.lock().expect("no panic").push(path(exchange));
        reply(exchange, "served");
    };
    Server::on(&listen(), config, Some((Arc::clone(queues), slot)), Arc::new(call))
}

fn one_thread() -> Config {
    Config {
        max_threads: 1,
        ..config()
    }
}

#[test]
fn requests_wait_for_the_end_of_a_pause_and_run_in_their_order() {
    let paused = Paused::start(one_thread(), MINUTE);
    let paths: Vec<String> = (1..=5).map(|number| format!("/{number}")).collect();
    let mut clients: Vec<Client> = (1..)
        .zip(&paths)
        .map(|(count, path)| paused.waiting(path, count))
        .collect();
    assert!(paused.served().is_empty());
    paused.scoreboard.pause.end();
    for client in &mut clients {
        assert_eq!(client.response().text(), "served");
    }
    assert_eq!(paused.served(), paths);
    assert_eq!(paused.server.connect().get("/6").text(), "served");
}

#[test]
fn a_request_that_has_waited_for_too_long_is_refused_and_keeps_its_connection() {
    let paused = Paused::start(config(), 50 * MS);
    let mut client = paused.server.connect();
    let response = client.get("/late");
    assert_eq!(
        (response.status, response.text().as_str()),
        (503, "Service Unavailable\n")
    );
    assert!(response.head.contains("\r\nretry-after: 10\r\n"), "{}", response.head);
    paused.scoreboard.pause.end();
    assert_eq!(client.get("/again").text(), "served");
    assert_eq!(paused.served(), ["/again"]);
}

#[test]
fn a_pause_that_nobody_ends_has_a_limit() {
    let paused = Paused::start(config(), MINUTE);
    let mut client = paused.waiting("/", 1);
    paused.scoreboard.pause.begin(MINUTE, 20 * MS);
    assert_eq!(client.response().text(), "served");
}

#[test]
fn priority_paths_and_files_do_not_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file.txt"), "a file").expect("a file");
    std::fs::write(folder.path().join("503.html"), "<p>an error").expect("a file");
    let page = folder.path().join("soon");
    std::fs::write(&page, "<p>back soon").expect("a file");
    let mut config = Config {
        priority_paths: vec!["/up".into()],
        ..config()
    };
    config.files.public_dir = Some(folder.path().to_path_buf());
    config.files.file_cache_bytes = 1 << 20;
    config.files.error_page = vec![(vec![502, 503], page)];
    let paused = Paused::start(config, 20 * MS);
    let mut client = paused.server.connect();
    assert_eq!(client.get("/up").text(), "served");
    assert_eq!(client.get("/file.txt").text(), "a file");
    let response = client.get("/other");
    assert_eq!((response.status, response.text().as_str()), (503, "<p>back soon"));
    assert!(
        response.head.contains("\r\ncontent-type: text/html"),
        "{}",
        response.head
    );
}

#[test]
fn a_pause_is_no_wait_for_a_thread() {
    let config = Config {
        queue_timeout: 30 * MS,
        ..config()
    };
    let paused = Paused::start(config, MINUTE);
    let mut client = paused.waiting("/", 1);
    let since = std::time::Instant::now();
    eventually("more than queue_timeout", || since.elapsed() > 60 * MS);
    paused.scoreboard.pause.end();
    assert_eq!(client.response().text(), "served");
}

#[test]
fn requests_over_http2_wait_too() {
    let paused = Paused::start(config(), MINUTE);
    let mut client = Http2Client::connect(paused.server.address);
    let responses: Vec<_> = (0..3).map(|_| client.ask(get("/"), false)).collect();
    eventually("the requests wait", || paused.server.engine.stats().queued == 3);
    assert!(paused.served().is_empty());
    paused.scoreboard.pause.end();
    for response in responses {
        assert_eq!(client.response(response).expect("a response").status, 200);
    }
}

#[test]
fn requests_of_a_worker_that_retires_wait_in_another_one() {
    let paused = Paused::start(config(), MINUTE);
    let sibling = worker(config(), &paused.queues, 1, &paused.served);
    let mut clients = [paused.waiting("/a", 1), paused.waiting("/b", 2)];
    paused.server.engine.drain_and_migrate();
    eventually("they wait there", || sibling.engine.stats().queued == 2);
    assert!(paused.served().is_empty());
    assert!(paused.server.engine.wait(Some(PATIENCE)));
    paused.scoreboard.pause.end();
    for client in &mut clients {
        assert_eq!(client.response().text(), "served");
    }
}

#[test]
fn a_server_that_ends_serves_the_requests_that_wait() {
    let paused = Paused::start(config(), MINUTE);
    let mut client = paused.waiting("/", 1);
    paused.server.engine.drain();
    assert_eq!(client.response().text(), "served");
    assert!(paused.server.engine.wait(Some(PATIENCE)));
}

#[test]
fn requests_of_clients_that_have_left_are_dropped_during_the_pause() {
    let paused = Paused::start(one_thread(), MINUTE);
    let gone = paused.waiting("/gone", 1);
    let mut there = paused.waiting("/there", 2);
    drop(gone);
    eventually("it is dropped", || paused.server.engine.stats().abandoned_requests == 1);
    assert_eq!(paused.server.engine.stats().queued, 1);
    paused.scoreboard.pause.end();
    assert_eq!(there.response().text(), "served");
    assert_eq!(paused.served(), ["/there"]);
}
