//! Two workers with TLS. The first one has no free thread, so the second one runs its requests.

use crate::support::tls::{connect as connect_to, TlsStream};
use crate::support::*;
use fairlead_engine::{Config, Exchange, Scoreboard};
use std::sync::{mpsc, Arc, Mutex};

/// Two workers: the only thread of the first one is held until the test releases it.
pub(crate) struct Workers {
    pub(crate) busy: Worker,
    pub(crate) free: Worker,
    pub(crate) scoreboard: &'static Scoreboard,
    pub(crate) release: mpsc::Sender<()>,
    _first: Client<TlsStream>,
}

pub(crate) type Worker = crate::common::Server;

impl Workers {
    pub(crate) fn start(call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static) -> Workers {
        Workers::with(|_| {}, call)
    }

    /// With other settings.
    pub(crate) fn with(
        change: impl FnOnce(&mut Config),
        call: impl Fn(&mut Exchange<'_>) + Send + Sync + 'static,
    ) -> Workers {
        let (queues, scoreboard) = shared_queues();
        let (release, hold) = mpsc::channel::<()>();
        let hold = Mutex::new(hold);
        let mut config = config();
        config.body_max_bytes = 1 << 30;
        // More than this makes the app wait.
        config.response_disk_bytes = 0;
        change(&mut config);
        let shared = |slot| Some((Arc::clone(&queues), slot));
        let wait = move |exchange: &mut Exchange<'_>| {
            let _ = hold.lock().expect("no panic").recv_timeout(PATIENCE);
            reply(exchange, "busy");
        };
        let one_thread = Config {
            min_threads: 1,
            max_threads: 1,
            ..config.clone()
        };
        let busy = Worker::with_tls(&listen(), one_thread, shared(0), Arc::new(wait));
        let mut first = connect_to(&busy);
        first.send("GET /first HTTP/1.1\r\nHost: test\r\n\r\n");
        eventually("it is busy", || busy.engine.stats().busy_threads == 1);
        let free = Worker::with_tls(&listen(), config, shared(1), Arc::new(call));
        Workers {
            busy,
            free,
            scoreboard,
            release,
            _first: first,
        }
    }

    /// A connection to the worker without a free thread.
    pub(crate) fn connect(&self) -> Client<TlsStream> {
        connect_to(&self.busy)
    }

    pub(crate) fn moved(&self) -> (u64, u64) {
        (self.busy.engine.stats().moved_out, self.free.engine.stats().moved_in)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        (0..100).for_each(|_| _ = self.release.send(()));
    }
}
