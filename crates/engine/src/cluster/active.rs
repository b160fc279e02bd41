//! The requests that the threads of a worker run now, by method and scheme, for `http_server_active_requests`.

use super::responses::RequestKind;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// See the head of this file; in the order of [`RequestKind::index`].
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Active([AtomicI64; RequestKind::COUNT]);

impl Active {
    pub(crate) fn change(&self, kind: RequestKind, by: i64) {
        self.0[kind.index()].fetch_add(by, Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Relaxed));
    }

    /// Each kind with its number.
    pub(crate) fn load(&self) -> impl Iterator<Item = (RequestKind, i64)> + '_ {
        let counts = self.0.iter().map(|count| count.load(Relaxed));
        RequestKind::all().zip(counts)
    }
}
