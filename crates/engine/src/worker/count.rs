//! Counts of an engine's current objects, such as connections. Each counted object owns a [`Count`], so it cannot be
//! counted down twice, nor be forgotten. A request that runs has an [`ActiveRequest`].

use super::Worker;
use crate::cluster::responses::RequestKind;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// One unit in a gauge of the worker; released when dropped. A process that the app has forked shares the gauge and
/// does not change it.
pub(crate) struct Count {
    worker: Arc<Worker>,
    gauge: Gauge,
    /// Counted in this gauge, too.
    protocol: Option<Gauge>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gauge {
    Connections,
    Clients,
    Http2,
    WebSockets,
    EventStreams,
    Immovable,
}

/// The protocol of a client, if it is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientProtocol {
    WebSocket,
    EventStream,
    Other,
}

/// A request that a thread runs; counted until it is dropped.
pub(crate) struct ActiveRequest<'a> {
    worker: &'a Worker,
    kind: RequestKind,
}

impl<'a> ActiveRequest<'a> {
    pub(crate) fn new(worker: &'a Worker, kind: RequestKind) -> ActiveRequest<'a> {
        worker.counters().active.change(kind, 1);
        ActiveRequest { worker, kind }
    }
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        if self.worker.is_at_home() {
            self.worker.counters().active.change(self.kind, -1);
        }
    }
}

impl Count {
    /// Counts one more connection.
    pub(crate) fn connection(worker: &Arc<Worker>) -> Count {
        Count::of(worker, Gauge::Connections, None)
    }

    /// Counts one more client.
    pub(crate) fn client(worker: &Arc<Worker>, protocol: ClientProtocol) -> Count {
        let protocol = match protocol {
            ClientProtocol::WebSocket => Some(Gauge::WebSockets),
            ClientProtocol::EventStream => Some(Gauge::EventStreams),
            ClientProtocol::Other => None,
        };
        Count::of(worker, Gauge::Clients, protocol)
    }

    /// Counts one more client that cannot migrate.
    pub(crate) fn immovable(worker: &Arc<Worker>) -> Count {
        Count::of(worker, Gauge::Immovable, None)
    }

    fn of(worker: &Arc<Worker>, gauge: Gauge, protocol: Option<Gauge>) -> Count {
        let count = Count {
            worker: Arc::clone(worker),
            gauge,
            protocol,
        };
        count.change(1);
        count
    }

    /// Counts a connection as one of HTTP/2 from now on.
    pub(crate) fn becomes_http2(&mut self) {
        if self.worker.is_at_home() && self.protocol.is_none() {
            self.protocol = Some(Gauge::Http2);
            self.change_one(Gauge::Http2, 1);
        }
    }

    fn change(&self, by: i64) {
        for gauge in [Some(self.gauge), self.protocol].into_iter().flatten() {
            self.change_one(gauge, by);
        }
    }

    fn change_one(&self, gauge: Gauge, by: i64) {
        let counters = self.worker.counters();
        let gauge = match gauge {
            Gauge::Connections => &counters.connections,
            Gauge::Clients => &counters.clients,
            Gauge::Http2 => &counters.open_http2_connections,
            Gauge::WebSockets => &counters.websockets,
            Gauge::EventStreams => &counters.event_streams,
            Gauge::Immovable => &counters.immovable,
        };
        gauge.fetch_add(by, SeqCst);
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        if !self.worker.is_at_home() {
            return;
        }
        self.change(-1);
        if self.gauge == Gauge::Connections {
            self.worker.give_place_back();
        }
    }
}
