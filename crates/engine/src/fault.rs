//! Faults of our own, as tests bring them about. A panic ends the turn that it happens in and is logged
//! ([`Worker::guard`](crate::worker::Worker::guard)); everything else goes on. What the turn owned is given back by guards
//! ([`Place`](crate::connection::place::Place), [`Seat`](crate::scheduler::states::Seat)), not by whoever catches the panic.

pub(crate) use injection::Faults;

mod injection {
    use parking_lot::Mutex;

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fault {
        Panic,
        Failure,
    }

    /// What is to go wrong in an engine, once each.
    #[derive(Default)]
    pub(crate) struct Faults(Mutex<Vec<(&'static str, Fault)>>);

    impl Faults {
        pub(crate) fn plan(&self, point: &'static str, fault: Fault) {
            self.0.lock().push((point, fault));
        }

        pub(crate) fn are_over(&self) -> bool {
            self.0.lock().is_empty()
        }

        pub(crate) fn strike(&self, point: &'static str) -> bool {
            let mut faults = self.0.lock();
            let Some(index) = faults.iter().position(|(name, _)| *name == point) else {
                return false;
            };
            let (_, fault) = faults.remove(index);
            drop(faults);
            assert!(fault != Fault::Panic, "as planned: {point}");
            true
        }
    }
}

mod tests {
    use super::injection::Fault;
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

    /// After a fault everything is as before: nothing is counted that is not there, and others are served.
    fn serves_on(server: &Server) {
        assert!(server.engine.faults().are_over(), "what was planned has happened");
        assert_eq!(server.connect().get("/").text(), "ok");
        eventually("no connection is left", || server.engine.stats().connections == 0);
        // The thread that has closed the connection may not be done yet.
        eventually("no thread is busy", || server.engine.stats().busy_threads == 0);
        let stats = server.engine.stats();
        assert_eq!((stats.threads, stats.queued), (2, 0));
    }

    #[test]
    fn a_panic_over_a_connection_closes_it_and_no_other() {
        let server = server();
        let mut other = server.connect();
        assert_eq!(other.get("/").text(), "ok");
        let mut client = server.connect();
        eventually("both are there", || server.engine.stats().connections == 2);
        server.engine.faults().plan("step", Fault::Panic);
        client.send(GET);
        assert!(client.is_closed());
        assert_eq!(other.get("/").text(), "ok");
        drop(other);
        serves_on(&server);
    }

    #[test]
    fn a_panic_while_time_outs_are_looked_at_forgets_none() {
        let server = server();
        server.engine.faults().plan("expire", Fault::Panic);
        let (mut first, mut second) = (server.connect(), server.connect());
        assert!(first.is_closed());
        assert!(second.is_closed());
        serves_on(&server);
    }

    #[test]
    fn a_panic_among_the_time_outs_is_followed_by_another_look() {
        let server = server();
        server.engine.faults().plan("look for time-outs", Fault::Panic);
        let mut client = server.connect();
        assert!(client.is_closed());
        serves_on(&server);
    }

    #[test]
    fn a_panic_while_accepting_costs_a_pause() {
        let server = server();
        server.engine.faults().plan("accept", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        serves_on(&server);
    }

    #[test]
    fn a_listener_that_cannot_be_watched_is_tried_again() {
        let server = server();
        server.engine.faults().plan("watch a listener", Fault::Failure);
        // A panic takes the listeners out of the poll set, so that they have to come back.
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
    fn a_thread_that_panics_goes_on() {
        let server = server();
        server.engine.faults().plan("turn", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        serves_on(&server);
    }

    #[test]
    fn a_job_that_panics_is_given_up() {
        let server = server();
        server.engine.faults().plan("run", Fault::Panic);
        let mut client = server.connect();
        client.send(GET);
        assert!(client.is_closed());
        serves_on(&server);
    }

    #[test]
    fn a_monitor_that_panics_goes_on() {
        let server = server();
        server.engine.faults().plan("monitor", Fault::Panic);
        assert_eq!(server.connect().get("/").text(), "ok");
        eventually("it has panicked", || server.engine.faults().are_over());
        let before = server.engine.counters().queued.fetch_add(1_000, SeqCst);
        eventually("it looks again", || {
            server.engine.defer();
            server.engine.counters().queued.load(SeqCst) < before + 1_000
        });
        serves_on(&server);
    }
}
