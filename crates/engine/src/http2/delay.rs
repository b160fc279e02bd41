//! Responses that are sent together. While another request of an HTTP/2 connection is about to run, `h2` keeps its
//! output until that request has its response, because each send costs as much as a short request. The output is sent
//! when the thread finds nothing to run, when the app blocks, after a few responses, or in the next tick of the
//! monitor, a millisecond later.

use super::connection::Http2Connection;
use super::listed::Listed;
use std::sync::Weak;

/// The HTTP/2 connections of an engine that have something to send.
#[derive(Default)]
pub(crate) struct Delayed(Listed);

impl Delayed {
    pub(super) fn add(&self, connection: Weak<Http2Connection>) {
        self.0.add(connection);
    }

    /// Sends all delayed responses now. Costs one load in the usual case.
    #[inline]
    pub(crate) fn send(&self) {
        if self.0.is_any() {
            self.send_all();
        }
    }

    #[cold]
    fn send_all(&self) {
        self.0.take().iter().for_each(|connection| connection.push());
    }
}
