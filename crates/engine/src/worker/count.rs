//! Counts of an engine's current objects, such as connections. Each counted object owns a [`Count`], so it cannot be
//! counted down twice, nor be forgotten.

use super::Worker;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

/// One unit in a gauge of the worker; released when dropped. A process that the app has forked shares the gauge and
/// does not change it.
pub(crate) struct Count {
    worker: Arc<Worker>,
    gauge: Gauge,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gauge {
    Connections,
    Clients,
}

impl Count {
    /// Counts one more connection.
    pub(crate) fn connection(worker: &Arc<Worker>) -> Count {
        Count::of(worker, Gauge::Connections)
    }

    /// Counts one more client.
    pub(crate) fn client(worker: &Arc<Worker>) -> Count {
        Count::of(worker, Gauge::Clients)
    }

    fn of(worker: &Arc<Worker>, gauge: Gauge) -> Count {
        let count = Count {
            worker: Arc::clone(worker),
            gauge,
        };
        count.change(1);
        count
    }

    fn change(&self, by: i64) {
        let counters = self.worker.counters();
        let gauge = match self.gauge {
            Gauge::Connections => &counters.connections,
            Gauge::Clients => &counters.clients,
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
