//! Injects faults of the engine itself, for tests. A panic ends the turn in which it happens and is logged
//! ([`Worker::guard`](crate::worker::Worker::guard)); everything else continues. Guards
//! ([`Place`](crate::connection::place::Place), [`Seat`](crate::scheduler::states::Seat)) release the resources of the
//! turn, not the code that catches the panic.

pub(crate) use injection::{Fault, Faults};

mod injection {
    use crate::sync::{Condvar, Mutex};

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fault {
        Panic,
        Failure,
        /// The thread hangs until [`Faults::release`].
        Hang,
    }

    /// Planned faults of an engine; each happens once.
    #[derive(Default)]
    pub(crate) struct Faults {
        planned: Mutex<Vec<(&'static str, Fault)>>,
        /// Threads that hang.
        hanging: Mutex<usize>,
        released: Condvar,
    }

    impl Faults {
        pub(crate) fn plan(&self, point: &'static str, fault: Fault) {
            self.planned.lock().push((point, fault));
        }

        pub(crate) fn are_over(&self) -> bool {
            self.planned.lock().is_empty()
        }

        /// Number of planned faults at that point.
        pub(crate) fn left(&self, point: &str) -> usize {
            self.planned.lock().iter().filter(|(name, _)| *name == point).count()
        }

        pub(crate) fn hanging(&self) -> usize {
            *self.hanging.lock()
        }

        /// Lets the hanging threads continue.
        pub(crate) fn release(&self) {
            *self.hanging.lock() = 0;
            self.released.notify_all();
        }

        pub(crate) fn strike(&self, point: &'static str) -> bool {
            let mut faults = self.planned.lock();
            let Some(index) = faults.iter().position(|(name, _)| *name == point) else {
                return false;
            };
            let (_, fault) = faults.remove(index);
            drop(faults);
            if fault == Fault::Hang {
                let mut hanging = self.hanging.lock();
                *hanging += 1;
                while *hanging > 0 {
                    self.released.wait(&mut hanging);
                }
            }
            assert!(fault != Fault::Panic, "as planned: {point}");
            true
        }
    }
}

mod tests {
    use super::Fault;
    use crate::support::http2::Http2Client;
    use crate::support::*;
    use std::sync::atomic::Ordering::SeqCst;
    use std::time::Duration;

    const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

    fn server() -> Server {
        let mut config = config();
        config.head_timeout = Duration::from_millis(300);
        (config.min_threads, config.max_threads) = (2, 2);
        Server::start(config, |exchange| reply(exchange, "ok"))
    }

    /// Checks that after a fault everything is as before: no count is wrong, and other clients are served.
    fn serves_on(server: &Server) {
        assert!(server.engine.faults().are_over(), "all planned faults have happened");
        assert_eq!(server.connect().get("/").text(), "ok");
        eventually("no connection is left", || server.engine.stats().connections == 0);
        // The thread that has closed the connection may still be busy.
        eventually("no thread is busy", || server.engine.stats().busy_threads == 0);
        let stats = server.engine.stats();
        assert_eq!((stats.threads, stats.queued), (2, 0));
    }

    #[test]
    fn a_panic_closes_only_the_connection_that_was_handled() {
        let server = server();
        let mut other = server.connect();
        assert_eq!(other.get("/").text(), "ok");
        let mut client = server.connect();
        eventually("both are open", || server.engine.stats().connections == 2);
        server.engine.faults().plan("step", Fault::Panic);
        client.send(GET);
        assert!(client.is_closed());
        assert_eq!(other.get("/").text(), "ok");
        drop(other);
        serves_on(&server);
    }

    #[test]
    fn a_panic_ends_only_the_http2_connection_that_was_handled() {
        let server = server();
        let mut other = Http2Client::connect(server.address);
        assert_eq!(other.get("/").text(), "ok");
        let mut client = Http2Client::connect(server.address);
        assert_eq!(client.get("/").text(), "ok");
        server.engine.faults().plan("step an HTTP/2 connection", Fault::Panic);
        let asked = client.ask(crate::support::http2::get("/"), false);
        assert!(client.response(asked).is_err(), "the connection is closed");
        assert_eq!(other.get("/").text(), "ok");
        drop((client, other));
        serves_on(&server);
    }

    #[test]
    fn a_panic_while_a_time_out_is_handled_forgets_no_other() {
        let server = server();
        server.engine.faults().plan("expire", Fault::Panic);
        let (mut first, mut second) = (server.connect(), server.connect());
        assert!(first.is_closed());
        assert!(second.is_closed());
        serves_on(&server);
    }

    #[test]
    fn a_panic_during_the_check_for_time_outs_is_followed_by_another_check() {
        let server = server();
        server.engine.faults().plan("look for time-outs", Fault::Panic);
        let mut client = server.connect();
        assert!(client.is_closed());
        serves_on(&server);
    }

    #[test]
    fn accepting_continues_after_a_panic() {
        let server = server();
        server.engine.faults().plan("accept", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        serves_on(&server);
    }

    #[test]
    fn watching_a_listener_is_retried_after_a_failure() {
        let server = server();
        server.engine.faults().plan("watch a listener", Fault::Failure);
        // A panic takes the listeners out of the poll set, so they have to be added again.
        server.engine.faults().plan("accept", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        serves_on(&server);
    }

    #[test]
    fn a_connection_that_cannot_be_watched_is_refused() {
        let server = server();
        server.engine.faults().plan("watch a connection", Fault::Failure);
        assert_eq!(server.connect().get("/").status, 503);
        serves_on(&server);
    }

    #[test]
    fn a_thread_continues_after_a_panic() {
        let server = server();
        server.engine.faults().plan("turn", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        serves_on(&server);
    }

    #[test]
    fn the_connection_of_a_job_that_panics_is_closed() {
        let server = server();
        server.engine.faults().plan("run", Fault::Panic);
        let mut client = server.connect();
        client.send(GET);
        assert!(client.is_closed());
        serves_on(&server);
    }

    #[test]
    fn a_panic_while_a_thread_gives_the_lock_up_goes_no_further() {
        let (opens, gate) = std::sync::mpsc::channel();
        let gate = std::sync::Mutex::new(gate);
        let mut config = config();
        (config.min_threads, config.max_threads) = (2, 2);
        let server = Server::start(config, move |exchange| {
            let _ = gate.lock().map(|gate| gate.recv_timeout(Duration::from_secs(10)));
            reply(exchange, "ok");
        });
        let mut client = server.connect();
        client.send(GET);
        eventually("a thread runs it", || server.engine.stats().busy_threads == 1);
        for panics in [true, false] {
            if panics {
                server.engine.faults().plan("give way", Fault::Panic);
            }
            server.engine.suspend();
            server.engine.resume();
        }
        opens.send(()).expect("the thread waits");
        assert_eq!(client.response().text(), "ok");
        opens.send(()).expect("another request may come");
        drop(client);
        serves_on(&server);
    }

    #[test]
    fn the_monitor_continues_after_a_panic() {
        let server = server();
        server.engine.faults().plan("monitor", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        eventually("the monitor has panicked", || server.engine.faults().are_over());
        let before = server.engine.counters().queued.fetch_add(1_000, SeqCst);
        eventually("the monitor ticks again", || {
            server.engine.defer();
            server.engine.counters().queued.load(SeqCst) < before + 1_000
        });
        serves_on(&server);
    }
}
