//! A lane carries one stream after the other, like a client that sends its next request when it has its response.
//!
//! ```text
//!   Free -> Waiting -> Sent -> Answering -> Free
//!              ^--------'---------'   (the connection is gone, or the server has not processed the request)
//! ```

use super::signal::Signal;
use super::trouble::Cost;
use crate::clock::Started;
use h2::client::ResponseFuture;
use h2::RecvStream;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// A request that has started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) started: Started,
    pub(super) kind: usize,
}

#[derive(Debug)]
pub(super) struct Lane {
    state: State,
    signal: Signal,
}

#[derive(Debug)]
enum State {
    Free,
    /// Waits for a stream.
    Waiting(Taken),
    /// Waits for the head of the response.
    Sent(Taken, ResponseFuture),
    /// Receives the content of the response.
    Answering(Taken, u16, RecvStream),
}

/// Progress of a lane.
#[derive(Debug)]
pub(super) enum Progress {
    Nothing,
    Answered(Taken, u16),
    Failed(Taken, Cost),
}

impl Lane {
    pub(super) fn new() -> Lane {
        Lane {
            state: State::Free,
            signal: Signal::new(),
        }
    }

    pub(super) fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Returns `true` if the lane has a stream.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Sent(..) | State::Answering(..))
    }

    /// The request of the lane.
    pub(super) fn taken(&self) -> Option<Taken> {
        match self.state {
            State::Free => None,
            State::Waiting(taken) | State::Sent(taken, _) | State::Answering(taken, ..) => Some(taken),
        }
    }

    /// Lets a request wait for a stream, perhaps for the second time.
    pub(super) fn wait(&mut self, taken: Taken) {
        self.state = State::Waiting(taken);
    }

    /// The waiting request has been sent.
    pub(super) fn sent(&mut self, response: ResponseFuture) {
        if let State::Waiting(taken) = self.state {
            self.state = State::Sent(taken, response);
            self.signal.raise();
        }
    }

    /// Gives up the request. An open stream is reset (RFC 9113 §5.4.2).
    pub(super) fn clear(&mut self) -> Option<Taken> {
        let taken = self.taken();
        self.state = State::Free;
        taken
    }

    /// Polls the stream if something has happened on it.
    pub(super) fn poll(&mut self) -> Progress {
        if !self.is_open() || !self.signal.take() {
            return Progress::Nothing;
        }
        let polled = match &mut self.state {
            State::Free | State::Waiting(_) => Poll::Pending,
            State::Sent(taken, response) => match Pin::new(response).poll(&mut self.signal.context()) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
                Poll::Ready(Ok(answer)) => {
                    let (status, taken) = (answer.status().as_u16(), *taken);
                    let mut content = answer.into_body();
                    let read = read(&mut content, &self.signal).map_ok(|()| status);
                    self.state = State::Answering(taken, status, content);
                    read
                }
            },
            State::Answering(_, status, content) => read(content, &self.signal).map_ok(|()| *status),
        };
        let Poll::Ready(result) = polled else {
            return Progress::Nothing;
        };
        match (self.clear(), result) {
            (None, _) => Progress::Nothing,
            (Some(taken), Ok(status)) => Progress::Answered(taken, status),
            (Some(taken), Err(error)) => Progress::Failed(taken, Cost::of(&error)),
        }
    }
}

/// Reads and discards the content, and releases its flow-control window at once.
fn read(content: &mut RecvStream, signal: &Signal) -> Poll<Result<(), h2::Error>> {
    loop {
        match content.poll_data(&mut signal.context()) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(Ok(())),
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
            Poll::Ready(Some(Ok(data))) => content.flow_control().release_capacity(data.len()).unwrap_or_default(),
        }
    }
}
