//! A disk that does not respond, over real sockets. Planned faults simulate it: no file is in the kernel's memory, and
//! lookups wait until the test lets them continue.

use crate::fault::Fault;
use crate::files::LOOK_UP_TIME;
use crate::support::http2::{get, Http2Client};
use crate::support::{config, eventually, path, reply, Server};
use crate::{Config, FilesConfig};
use std::fs;
use std::time::Duration;
use tempfile::TempDir;

/// A server with `/page.txt` and `/folder/page.txt`, in front of an app.
fn server() -> (TempDir, Server) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("folder")).expect("a folder");
    for name in ["page.txt", "folder/page.txt"] {
        fs::write(folder.path().join(name), "page").expect("a file");
    }
    let files = FilesConfig {
        public_dir: Some(folder.path().to_path_buf()),
        file_cache_bytes: 1 << 20,
        ..FilesConfig::default()
    };
    let server = Server::start(Config { files, ..config() }, |exchange| {
        let text = format!("app {}", path(exchange));
        reply(exchange, &text);
    });
    (folder, server)
}

/// A server that has looked for a file in `/folder`: not every system tells which folders it has in memory.
fn server_that_knows_its_folder() -> (TempDir, Server) {
    let (folder, server) = server();
    assert_eq!(server.connect().get("/folder/page.txt").text(), "page");
    (folder, server)
}

/// Makes the next lookups leave memory; `hanging` of them do not return before [`release`].
fn plan(server: &Server, look_ups: usize, hanging: usize) {
    let faults = server.engine.faults();
    (0..look_ups).for_each(|_| faults.plan("look in memory", Fault::Failure));
    (0..hanging).for_each(|_| faults.plan("look up", Fault::Hang));
}

fn wait_until_hanging(server: &Server, count: usize) {
    eventually("the lookups hang", || server.engine.faults().hanging() == count);
}

fn release(server: &Server) {
    server.engine.faults().release();
}

fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")
}

#[test]
fn a_look_up_that_hangs_delays_no_other_request() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let (mut waiting, mut other) = (server.connect(), server.connect());
    waiting.send(&request("/page.txt"));
    wait_until_hanging(&server, 1);
    for _ in 0..20 {
        assert_eq!(other.get("/page.txt").text(), "page");
        assert_eq!(other.get("/cart").text(), "app /cart");
    }
    release(&server);
    assert_eq!(waiting.response().text(), "page");
    assert_eq!(waiting.get("/page.txt").text(), "page");
    assert_eq!(server.engine.stats().requests, 42);
}

#[test]
fn responses_keep_the_order_of_their_requests() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let mut client = server.connect();
    client.send(&[request("/page.txt"), request("/cart"), request("/folder/page.txt")].concat());
    wait_until_hanging(&server, 1);
    release(&server);
    let texts = [client.response(), client.response(), client.response()].map(|response| response.text());
    assert_eq!(texts, ["page", "app /cart", "page"]);
}

#[test]
fn after_a_while_the_app_gets_what_may_be_its_own_and_the_rest_is_refused() {
    let (_folder, server) = server_that_knows_its_folder();
    plan(&server, 2, 2);
    let (mut cart, mut file) = (server.connect(), server.connect());
    cart.send(&[request("/cart"), request("/page.txt")].concat());
    file.send(&[request("/folder/missing.txt"), request("/page.txt")].concat());
    wait_until_hanging(&server, 2);
    assert_eq!(cart.response().text(), "app /cart");
    let refused = file.response();
    assert_eq!((refused.status, refused.head.contains("retry-after: 1")), (503, true));
    // Requests behind them are not affected, and the lookups that end later do not affect them either. Without knowledge of the
    // kernel's memory they need a thread, too, and the threads for this address hang.
    let expected = match fairlead_system::IS_PORTABLE {
        true => "app /page.txt",
        false => "page",
    };
    assert_eq!([cart.response().text(), file.response().text()], [expected; 2]);
    release(&server);
    eventually("the threads look again", || cart.get("/page.txt").text() == "page");
    assert_eq!(file.get("/cart").text(), "app /cart");
}

#[test]
fn while_every_thread_hangs_nobody_waits_for_one() {
    let (_folder, server) = server_that_knows_its_folder();
    // All have one address: its share of the threads hangs.
    plan(&server, 2, 2);
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        client.send(&request("/cart"));
        assert!(client.response().text().starts_with("app"), "after {LOOK_UP_TIME:?}");
    }
    wait_until_hanging(&server, 2);
    // Pipelined, so that a recursion for each of them would show.
    plan(&server, 2_000, 0);
    let began = std::time::Instant::now();
    clients[0].send(&request("/folder/page.txt").repeat(1_999));
    let statuses: Vec<u16> = (0..1_999).map(|_| clients[0].response().status).collect();
    assert!(statuses.iter().all(|status| *status == 503), "{statuses:?}");
    assert_eq!(clients[1].get("/cart").text(), "app /cart");
    assert!(server.engine.faults().hanging() == 2, "{:?}", began.elapsed());
    release(&server);
}

#[test]
fn a_session_whose_look_ups_hang_leaves_threads_to_others() {
    let (_folder, server) = server();
    // Now the kernel knows that there is no such file.
    assert_eq!(server.connect().get("/cart").text(), "app /cart");
    let mut session = Http2Client::connect(server.address);
    plan(&server, 99, 2);
    let asked: Vec<_> = (0..99).map(|_| session.ask(get("/page.txt"), false)).collect();
    wait_until_hanging(&server, 2);
    eventually("all lookups wait", || {
        session.advance();
        server.engine.faults().left("look in memory") == 0
    });
    // Without knowledge of the kernel's memory, these need a thread, too, and the threads for this address hang.
    if !fairlead_system::IS_PORTABLE {
        assert_eq!(session.get("/cart").text(), "app /cart");
        assert_eq!(server.connect().get("/page.txt").text(), "page");
    }
    release(&server);
    for stream in asked {
        assert_eq!(session.response(stream).expect("a response").text(), "page");
    }
}

#[test]
fn a_file_whose_disk_hangs_while_it_is_sent_stops_no_other() {
    let (folder, server) = server();
    let large = "x".repeat(300_000);
    fs::write(folder.path().join("large.txt"), &large).expect("a file");
    server.engine.faults().plan("send a slice", Fault::Hang);
    let mut waiting = server.connect();
    waiting.send(&request("/large.txt"));
    wait_until_hanging(&server, 1);
    for _ in 0..3 {
        assert!(server.connect().get("/large.txt").text() == large);
    }
    assert_eq!(server.engine.faults().hanging(), 1);
    release(&server);
    assert!(waiting.response().text() == large);
}

#[test]
fn a_client_that_leaves_is_forgotten() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let mut client = server.connect();
    client.send(&request("/page.txt"));
    wait_until_hanging(&server, 1);
    // With a reset: a client that only ends its output may still want the response.
    rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).expect("a socket");
    drop(client);
    eventually("the connection is closed", || server.engine.stats().connections == 0);
    release(&server);
    assert_eq!(server.connect().get("/page.txt").text(), "page");
}

#[test]
fn a_client_that_sends_nothing_more_gets_its_response() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let mut client = server.connect();
    client.send(&request("/page.txt"));
    client.stream.shutdown(std::net::Shutdown::Write).expect("a socket");
    wait_until_hanging(&server, 1);
    release(&server);
    assert_eq!(client.response().text(), "page");
}

#[test]
fn a_drain_waits_for_a_look_up() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let mut client = server.connect();
    client.send(&request("/page.txt"));
    wait_until_hanging(&server, 1);
    server.engine.drain();
    assert!(
        !server.engine.wait(Some(Duration::from_millis(300))),
        "the engine has not ended"
    );
    release(&server);
    assert_eq!(client.response().text(), "page");
    assert!(
        server.engine.wait(Some(Duration::from_secs(20))),
        "the engine has ended"
    );
}

#[test]
fn the_end_does_not_wait_for_a_look_up_that_hangs() {
    let (_folder, server) = server();
    plan(&server, 1, 1);
    let mut client = server.connect();
    client.send(&request("/page.txt"));
    wait_until_hanging(&server, 1);
    server.engine.stop();
    assert!(
        server.engine.wait(Some(Duration::from_secs(20))),
        "the engine has ended"
    );
    assert!(client.is_closed());
    release(&server);
}

#[test]
fn a_panic_while_a_thread_looks_is_a_503() {
    let (_folder, server) = server();
    plan(&server, 1, 0);
    server.engine.faults().plan("look up", Fault::Panic);
    let mut client = server.connect();
    assert_eq!(client.get("/page.txt").status, 503);
    assert_eq!(client.get("/page.txt").text(), "page");
}
