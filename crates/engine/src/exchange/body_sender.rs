//! Body sender: the native thread of an engine that sends what bodies have written and their sockets have not taken,
//! while the app works on (`loan.rs`). It starts with the first loan. It sends a slice of each loan in turn, when the
//! socket has room, and sleeps if no socket has.

use super::loan::{AfterSlice, Loan};
use crate::home::Home;
use crate::sync::Mutex;
use crate::worker::Worker;
use fairlead_system::wake_up;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause for a socket that has reported room and then takes nothing.
const PAUSE: Duration = Duration::from_millis(10);

/// Added to the niceness of the process, as for the file sender.
const NICENESS: i32 = 5;

/// See the head of this file. Ends the thread when it is dropped.
pub(crate) struct BodySender(Arc<Senders>);

/// The way to the thread.
pub(super) struct Senders {
    worker: Weak<Worker>,
    home: Home,
    entrance: Mutex<Entrance>,
}

#[derive(Default)]
struct Entrance {
    /// Loans that the thread has not seen.
    new: Vec<Arc<Loan>>,
    /// `None` before the first loan.
    waker: Option<Arc<OwnedFd>>,
    is_stopped: bool,
}

/// A loan in the list of the thread.
struct Listed {
    loan: Arc<Loan>,
    /// The next poll leaves it out.
    rests: bool,
    is_ready: bool,
}

impl BodySender {
    pub(crate) fn new(worker: &Arc<Worker>) -> BodySender {
        BodySender(Arc::new(Senders {
            worker: Arc::downgrade(worker),
            home: Home::here(),
            entrance: Mutex::default(),
        }))
    }

    pub(super) fn senders(&self) -> &Arc<Senders> {
        &self.0
    }

    /// Ends the thread. Each exchange keeps its output.
    pub(crate) fn stop(&self) {
        if self.0.home.is_here() {
            let mut entrance = self.0.entrance.lock();
            entrance.is_stopped = true;
            entrance.new.clear();
            entrance.wake();
        }
    }
}

impl Drop for BodySender {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Senders {
    /// Passes a loan to the thread, and starts the thread if necessary. Returns false if there is none.
    pub(super) fn add(self: &Arc<Self>, loan: &Arc<Loan>) -> bool {
        let mut entrance = self.entrance.lock();
        if entrance.is_stopped || entrance.waker.is_none() && !self.start(&mut entrance) {
            return false;
        }
        entrance.new.push(Arc::clone(loan));
        entrance.wake();
        true
    }

    fn start(self: &Arc<Self>, entrance: &mut Entrance) -> bool {
        let Ok(waker) = wake_up::open() else { return false };
        let (waker, me) = (Arc::new(waker), Arc::clone(self));
        let of_thread = Arc::clone(&waker);
        let thread = std::thread::Builder::new().name("fairlead bodies".into());
        let is_started = thread.spawn(move || me.run(&of_thread)).is_ok();
        entrance.waker = is_started.then_some(waker);
        is_started
    }

    /// Makes the thread look at its loans.
    pub(super) fn wake(&self) {
        self.entrance.lock().wake();
    }

    fn run(&self, waker: &OwnedFd) {
        fairlead_system::threads::be_nice(NICENESS);
        let mut loans = Vec::new();
        while self.take_new(waker, &mut loans) {
            loans.retain(|listed| listed.loan.is_due());
            if let Some(worker) = self.worker.upgrade() {
                worker.fault("watch the sockets of bodies");
            }
            wait(&mut loans, waker);
            let Some(worker) = self.worker.upgrade() else { return };
            loans.retain_mut(|listed| listed.send(&worker));
        }
    }

    /// Takes the new loans. Returns false at the end.
    fn take_new(&self, waker: &OwnedFd, loans: &mut Vec<Listed>) -> bool {
        wake_up::take(waker);
        let mut entrance = self.entrance.lock();
        loans.extend(entrance.new.drain(..).map(|loan| Listed {
            loan,
            rests: false,
            is_ready: false,
        }));
        !entrance.is_stopped
    }
}

impl Entrance {
    fn wake(&self) {
        if let Some(waker) = &self.waker {
            wake_up::ring(waker);
        }
    }
}

impl Listed {
    /// Sends a slice if the socket has room. Returns false if the loan is over.
    fn send(&mut self, worker: &Worker) -> bool {
        if !self.is_ready {
            return true;
        }
        let sent = worker.guard("the body sender", || self.loan.send_slice(worker));
        let after = sent.unwrap_or_else(|| self.loan.fail());
        self.rests = after == AfterSlice::Nothing;
        after != AfterSlice::Over
    }
}

/// Waits until a socket has room, or the thread is woken.
fn wait(loans: &mut [Listed], waker: &OwnedFd) {
    let pauses = loans.iter().any(|listed| listed.rests).then_some(PAUSE);
    let timeout = pauses.map(|pause| Timespec {
        tv_sec: 0,
        tv_nsec: pause.subsec_nanos() as _,
    });
    let watched = |listed: &&Listed| !listed.rests;
    let signals = loans
        .iter()
        .filter(watched)
        .map(|listed| listed.loan.transport().signal(PollFlags::OUT));
    let signals: Vec<_> = signals.collect();
    let mut polled = vec![PollFd::new(waker, PollFlags::IN)];
    polled.extend(
        signals
            .iter()
            .map(|(descriptor, event)| PollFd::new(descriptor, *event)),
    );
    let result = poll(&mut polled, timeout.as_ref());
    let has_failed = result.is_err_and(|error| error != Errno::INTR);
    let is_ready = |polled: &PollFd<'_>| result.is_ok() && !polled.revents().is_empty();
    let ready: Vec<bool> = polled[1..].iter().map(is_ready).collect();
    let mut ready = ready.into_iter();
    for listed in loans {
        listed.is_ready = !std::mem::take(&mut listed.rests) && ready.next() == Some(true);
    }
    if has_failed {
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use crate::exchange::Gone;
    use crate::fault::Fault;
    use crate::support::frames::{frame, get, reset, window_update, FrameClient, CANCEL, DATA, GOAWAY};
    use crate::support::{config, eventually, path, reply, Server, PATIENCE};
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread::JoinHandle;
    use std::time::Duration;

    /// More than the buffers of both sockets.
    const SIZE: usize = 20_000_000;

    /// The time for which connections are kept.
    const IDLE: Duration = Duration::from_millis(300);

    /// A body that exceeds the buffers of a socket, and then waits before it writes an end. Reports the result of each
    /// attempt to do so.
    fn serve() -> (Server, Sender<()>, Receiver<Result<usize, Gone>>) {
        let (release, hold) = mpsc::channel();
        let (report, attempt) = mpsc::channel();
        let hold = std::sync::Mutex::new(hold);
        let mut config = config();
        (config.min_threads, config.max_threads) = (2, 2);
        config.keep_alive_timeout = IDLE;
        let server = Server::start(config, move |exchange| {
            if path(exchange) != "/body" {
                return reply(exchange, "ok");
            }
            exchange.start(200);
            exchange.end_head(Some(SIZE as u64 + 3));
            assert_eq!(exchange.write(&vec![b'x'; SIZE]), Ok(SIZE));
            exchange.flush();
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            let mut attempt = exchange.write(b"end");
            let _ = report.send(attempt);
            while attempt == Ok(0) {
                attempt = exchange.wait_for_client().and_then(|()| exchange.write(b"end"));
                let _ = report.send(attempt);
            }
        });
        (server, release, attempt)
    }

    /// Sends the request, and reads until the server closes; returns the number of bytes.
    fn ask(server: &Server) -> JoinHandle<usize> {
        let mut client = server.connect();
        client.send("GET /body HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        std::thread::spawn(move || client.rest().len())
    }

    /// A client of HTTP/2 that has sent the request, and its window for the body.
    fn ask_over_http2(server: &Server, window: u32) -> FrameClient {
        let mut client = FrameClient::connect(server.address);
        client.send(&[window_update(0, 1 << 30), get(1, "/body"), window_update(1, window)].concat());
        client
    }

    /// Receives that many bytes of the body.
    fn receive(client: &mut FrameClient, bytes: usize) {
        let mut received = 0;
        while received < bytes {
            received += client.find_of(DATA, 1).payload.len();
        }
        assert_eq!(received, bytes);
    }

    #[test]
    fn a_stream_that_is_reset_while_its_body_waits_ends_alone() {
        let (server, release, attempt) = serve();
        let mut client = ask_over_http2(&server, 1);
        // After the first window, the body waits.
        receive(&mut client, 65_536);
        client.send(&window_update(1, 300_000));
        receive(&mut client, 300_000);
        eventually("the rest is on the disk", || {
            server.engine.stats().response_disk_bytes > SIZE as i64 - 1_000_000
        });
        client.send(&reset(1, CANCEL));
        eventually("nothing is kept for it", || {
            server.engine.stats().response_disk_bytes == 0
        });
        client.send(&get(3, "/"));
        assert_eq!(client.find_of(DATA, 3).payload, b"ok");
        release.send(()).expect("it waits");
        // The sender may have the output for a moment after the last byte is forgotten.
        let mut attempts = std::iter::repeat_with(|| attempt.recv_timeout(PATIENCE));
        assert_eq!(attempts.find(|attempt| *attempt != Ok(Ok(0))), Some(Ok(Err(Gone))));
        // The server forgets the stream, and so the connection is idle.
        client.rest();
    }

    #[test]
    fn a_client_that_sends_goaway_while_a_body_waits_gets_all_of_it() {
        let (server, release, _) = serve();
        let mut client = ask_over_http2(&server, 1);
        receive(&mut client, 65_536);
        client.send(&frame(GOAWAY, 0, 0, &[0; 8]));
        client.send(&window_update(1, 1 << 30));
        receive(&mut client, SIZE - 65_536);
        release.send(()).expect("it waits");
        assert_eq!(client.find_of(DATA, 1).payload, b"end");
    }

    #[test]
    fn a_stream_whose_response_ends_before_its_socket_is_watched_is_forgotten() {
        let (server, release, attempt) = serve();
        server.engine.faults().plan("watch the sockets of bodies", Fault::Hang);
        let mut client = ask_over_http2(&server, 1);
        eventually("the thread hangs", || server.engine.faults().hanging() == 1);
        client.send(&reset(1, CANCEL));
        client.ping();
        release.send(()).expect("it waits");
        assert!(attempt.recv_timeout(PATIENCE).is_ok());
        eventually("the response is over", || server.engine.stats().busy_threads == 0);
        server.engine.faults().release();
        client.rest();
    }

    #[test]
    fn a_slice_that_hangs_holds_up_only_its_writer() {
        let (server, release, attempt) = serve();
        server.engine.faults().plan("send a body", Fault::Hang);
        let client = ask(&server);
        eventually("the slice hangs", || server.engine.faults().hanging() == 1);
        release.send(()).expect("it waits");
        assert_eq!(attempt.recv_timeout(PATIENCE), Ok(Ok(0)), "the output is in a slice");
        assert_eq!(server.connect().get("/").text(), "ok");
        server.engine.faults().release();
        assert!(client.join().expect("no panic") > SIZE);
    }

    #[test]
    fn a_panic_in_a_slice_ends_only_its_response() {
        let (server, release, attempt) = serve();
        server.engine.faults().plan("send a body", Fault::Panic);
        let client = ask(&server);
        eventually("the slice has panicked", || server.engine.faults().are_over());
        release.send(()).expect("it waits");
        assert!(attempt.recv_timeout(PATIENCE).is_ok());
        assert!(client.join().expect("no panic") < SIZE);
        let next = ask(&server);
        release.send(()).expect("it waits");
        assert!(next.join().expect("no panic") > SIZE, "another body is sent");
    }
}
