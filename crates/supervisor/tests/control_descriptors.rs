//! The control server in a process that may have few descriptors: in a separate process, because the limit applies to
//! all threads.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

#[path = "control/support/mod.rs"]
mod support;

use fairlead_supervisor::control::ControlServer;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use support::{status, Builder, FakeHost};

static LIMIT: Mutex<()> = Mutex::new(());

/// A server that runs a turn only on request, and clients that have connected before.
struct Scene {
    server: ControlServer,
    host: FakeHost,
    silent: Vec<TcpStream>,
    probe: TcpStream,
    /// The limit before the test.
    limit: Rlimit,
    _only: MutexGuard<'static, ()>,
}

impl Scene {
    fn new(clients: usize) -> Scene {
        let only = LIMIT.lock().unwrap_or_else(PoisonError::into_inner);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let silent = (0..clients).map(|_| TcpStream::connect(address).unwrap()).collect();
        let mut probe = TcpStream::connect(address).unwrap();
        probe.write_all(b"GET /live HTTP/1.1\r\n\r\n").unwrap();
        Scene {
            server: ControlServer::new(vec![listener.into()], &Builder::default().kind).unwrap(),
            host: FakeHost::new(status(2), None),
            silent,
            probe,
            limit: getrlimit(Resource::Nofile),
            _only: only,
        }
    }

    /// Lets the process open `free` more descriptors from now on.
    fn leave(&self, free: u64) {
        let next: OwnedFd = self.probe.try_clone().unwrap().into();
        let current = Some(u64::try_from(next.as_raw_fd()).unwrap() + free);
        setrlimit(Resource::Nofile, Rlimit { current, ..self.limit }).unwrap();
    }

    /// Restores the previous limit.
    fn leave_all(&self) {
        setrlimit(Resource::Nofile, self.limit).unwrap();
    }

    fn turn(&mut self, now: Instant) {
        self.server.turn(now, &mut self.host);
    }

    /// Returns true if the server has work to do.
    fn is_ready(&self) -> bool {
        let mut descriptors = [PollFd::from_borrowed_fd(self.server.descriptor(), PollFlags::IN)];
        poll(&mut descriptors, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    /// Returns true if the probe has a response.
    fn is_answered(&mut self) -> bool {
        self.probe.set_nonblocking(true).unwrap();
        let mut text = String::new();
        let _ = self.probe.read_to_string(&mut text);
        text.ends_with(r#"{"status":"live"}"#)
    }

    /// The number of descriptors that can still be opened.
    fn free(&self) -> usize {
        let open = || self.probe.try_clone().ok();
        std::iter::from_fn(open).collect::<Vec<_>>().len()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.leave_all();
    }
}

#[test]
fn connections_leave_descriptors_to_the_supervisor() {
    let mut scene = Scene::new(50);
    scene.leave(40);
    for _ in 0..10 {
        scene.turn(Instant::now());
    }

    assert!(scene.is_answered());
    assert!(scene.free() >= 32, "{}", scene.free());
    let mut last = scene.silent.pop().unwrap();
    last.set_nonblocking(true).unwrap();
    assert!(last.read(&mut [0]).is_err(), "the newest connection is open");
    assert!(scene.host.shared.failures.lock().unwrap().is_empty());
}

#[test]
fn where_few_descriptors_are_left_one_connection_after_the_other_is_served() {
    let mut scene = Scene::new(50);
    scene.leave(3);
    for _ in 0..10 {
        scene.turn(Instant::now());
    }

    assert!(scene.is_answered());
    assert!(scene.host.shared.failures.lock().unwrap().is_empty());
}

#[test]
fn without_a_free_descriptor_it_pauses_and_says_so_once() {
    let mut scene = Scene::new(1);
    scene.leave(0);
    assert!(scene.is_ready());
    let now = Instant::now();
    scene.turn(now);
    assert!(!scene.is_ready());
    let pause = scene.server.deadline().unwrap() - now;
    scene.turn(now + pause);
    scene.turn(now + 2 * pause);

    assert_eq!(Duration::from_millis(100), pause);
    assert_eq!(1, scene.host.shared.failures.lock().unwrap().len());
    let failure = scene.host.shared.failures.lock().unwrap()[0].clone();
    assert!(failure.starts_with("cannot accept a connection: "), "{failure}");
    assert!(!scene.is_answered());
    scene.leave_all();
    (3..6).for_each(|turns| scene.turn(now + turns * pause));
    assert!(scene.is_answered());
}
