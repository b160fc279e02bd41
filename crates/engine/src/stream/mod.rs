//! A stream: one request after another and the response to each, over a transport. A connection of HTTP/1 has one stream to which
//! it belongs as a whole.

pub(crate) mod output;

use crate::http::request::Request;
use crate::transport::listener::Origin;
use crate::transport::Link;
use output::{FileParts, Flush, Output, Spill};
use rustix::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Stream {
    transport: Link,
    origin: Arc<Origin>,
    peer: Option<SocketAddr>,
    /// What has come and belongs to no request yet: whoever speaks on the transport next needs it.
    pub(crate) input: Vec<u8>,
    pub(crate) request: Request,
    pub(crate) output: Output,
}

impl Stream {
    pub(crate) fn new(transport: Link, origin: Arc<Origin>, peer: Option<SocketAddr>) -> Stream {
        Stream {
            transport,
            origin,
            peer,
            input: Vec::new(),
            request: Request::default(),
            output: Output::default(),
        }
    }

    pub(crate) fn transport(&self) -> &Link {
        &self.transport
    }

    pub(crate) fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// The peer's address, as it was when the connection was accepted; `None` for a Unix socket.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// The head of a request is at the start of the input: the request takes it.
    pub(crate) fn take_head(&mut self) {
        self.request.take_head(&mut self.input);
    }

    /// The request is over. Its buffer is kept for the next one.
    pub(crate) fn forget_request(&mut self) {
        let buffer = self.request.forget();
        if self.input.capacity() == 0 {
            self.input = buffer;
        }
    }

    /// Bytes of requests that are in memory.
    pub(crate) fn input_memory(&self) -> usize {
        self.input.len() + self.request.memory()
    }

    /// Adds body bytes to the output; see [`Output::push`].
    pub(crate) fn push(&mut self, bytes: &[u8], spill: Spill<'_>) -> io::Result<usize> {
        self.output.push(&*self.transport, bytes, spill, FileParts::Leave)
    }

    /// Hands the transport what it takes of the output, without waiting.
    pub(crate) fn flush(&mut self, files: FileParts) -> io::Result<Flush> {
        self.output.flush(&*self.transport, files)
    }
}
