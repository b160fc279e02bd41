//! The thread of the publish socket.

use fairlead_supervisor::listeners::Listener;
use fairlead_supervisor::log::Log;
use fairlead_supervisor::publishing::{Publishing, Request};
use fairlead_supervisor::settings::{ListenerSettings, Settings, SystemText};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest time for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

/// A thread, and what it publishes: the message, and if it is for the history.
struct Place {
    publishing: Publishing,
    published: Receiver<(String, bool)>,
    path: PathBuf,
    _folder: TempDir,
}

/// `undelivered`: the number of workers that do not take a message.
fn place(undelivered: usize) -> Place {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("publish.sock");
    let socket = UnixListener::bind(&path).expect("a socket");
    let settings = ListenerSettings {
        descriptor: Some(0),
        binding: SystemText::default(),
        address: format!("unix:{}", path.display()),
        file: Some(path.clone().into_os_string().into()),
        kept: false,
    };
    let listener = Listener::new(socket.into(), settings);
    let (sender, published) = channel();
    let publish = move |request: &Request<'_>| {
        let text = String::from_utf8_lossy(request.message).into_owned();
        sender.send((text, request.is_for_history())).expect("the test waits");
        undelivered
    };
    let settings: Settings = serde_json::from_str(include_str!("hot_restart/settings.json")).expect("settings");
    let publishing = Publishing::start(&listener, Box::new(publish), Log::new(&settings.log)).expect("a thread");
    Place {
        publishing,
        published,
        path,
        _folder: folder,
    }
}

impl Place {
    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }
}

fn request(message: &str, flags: u8) -> Vec<u8> {
    let length = u32::try_from(5 + 4 + message.len()).expect("a short message");
    [
        &length.to_be_bytes()[..],
        &[flags, 0, 0, 0, 4],
        b"news",
        message.as_bytes(),
    ]
    .concat()
}

fn reply(stream: &mut UnixStream) -> [u8; 5] {
    let mut reply = [0; 5];
    stream.read_exact(&mut reply).expect("a reply");
    reply
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn requests_of_one_process_are_published_in_order_with_a_reply_for_each() {
    let place = place(0);
    let mut stream = place.connect();
    stream
        .write_all(&[request("one", 0), request("two", 1)].concat())
        .expect("room");
    assert_eq!([reply(&mut stream), reply(&mut stream)], [[0; 5]; 2]);
    let published: Vec<_> = place.published.try_iter().collect();
    assert_eq!(published, [("one".into(), false), ("two".into(), true)]);
}

#[test]
fn the_reply_has_the_number_of_workers_that_did_not_take_the_message() {
    let place = place(3);
    let mut stream = place.connect();
    stream.write_all(&request("one", 0)).expect("room");
    assert_eq!(reply(&mut stream), [1, 0, 0, 0, 3]);
}

#[test]
fn while_it_rests_connections_wait_for_the_next_program() {
    let place = place(0);
    let mut former = place.connect();
    former.write_all(&request("one", 0)).expect("room");
    assert_eq!(reply(&mut former), [0; 5]);
    place.publishing.rest();
    wait_until("the rest", || place.publishing.is_resting());
    let mut end = Vec::new();
    assert_eq!(former.read_to_end(&mut end).unwrap_or_default(), 0, "it was closed");
    let mut next = place.connect();
    next.write_all(&request("two", 0)).expect("room");
    next.set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a timeout");
    let unanswered = next.read(&mut [0; 5]).expect_err("no reply yet");
    assert!(matches!(unanswered.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    place.publishing.resume();
    next.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    assert_eq!(reply(&mut next), [0; 5]);
    wait_until("the end of the rest", || !place.publishing.is_resting());
    let published: Vec<_> = place.published.try_iter().map(|(text, _)| text).collect();
    assert_eq!(published, ["one", "two"]);
}

#[test]
fn its_end_closes_the_connections() {
    let place = place(0);
    let mut stream = place.connect();
    stream.write_all(&request("one", 0)).expect("room");
    assert_eq!(reply(&mut stream), [0; 5]);
    drop(place.publishing);
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or_default(), 0);
}
