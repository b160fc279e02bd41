//! An in-memory pipe between the socket and h2.

use bytes::BytesMut;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Limit for the bytes that wait for the socket, give or take a frame; h2 keeps the rest.
const OUTPUT_BYTES: usize = 256 * 1024;

/// h2 reads and writes one end like a socket; we have the other end. Clones share the bytes. The pipe wakes no task:
/// after adding or removing bytes, the caller must poll h2.
#[derive(Clone, Debug, Default)]
pub(super) struct Pipe(Rc<RefCell<Bytes>>);

#[derive(Debug, Default)]
struct Bytes {
    input: BytesMut,
    /// Nothing more will be received.
    ended: bool,
    output: BytesMut,
}

impl Pipe {
    /// Gives received bytes to h2.
    pub(super) fn feed(&self, bytes: &[u8]) {
        self.0.borrow_mut().input.extend_from_slice(bytes);
    }

    /// Tells h2 that nothing more will be received.
    pub(super) fn end(&self) {
        self.0.borrow_mut().ended = true;
    }

    /// Appends the bytes that h2 has written to `output`. Returns `true` if h2 may have been waiting for room.
    pub(super) fn drain(&self, output: &mut BytesMut) -> bool {
        let mut bytes = self.0.borrow_mut();
        let was_full = bytes.output.len() >= OUTPUT_BYTES;
        if output.is_empty() {
            std::mem::swap(output, &mut bytes.output);
        } else {
            output.extend_from_slice(&bytes.output);
        }
        bytes.output.clear();
        was_full
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut bytes = self.0.borrow_mut();
        if bytes.input.is_empty() {
            return if bytes.ended {
                Poll::Ready(Ok(()))
            } else {
                Poll::Pending
            };
        }
        let length = bytes.input.len().min(buffer.remaining());
        buffer.put_slice(&bytes.input.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, written: &[u8]) -> Poll<io::Result<usize>> {
        let mut bytes = self.0.borrow_mut();
        if bytes.output.len() >= OUTPUT_BYTES {
            return Poll::Pending;
        }
        bytes.output.extend_from_slice(written);
        Poll::Ready(Ok(written.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::signal::Signal;
    use super::*;

    fn read(pipe: &mut Pipe, most: usize) -> Option<Vec<u8>> {
        let (signal, mut room) = (Signal::new(), vec![0; most]);
        let mut buffer = ReadBuf::new(&mut room);
        match Pin::new(pipe).poll_read(&mut signal.context(), &mut buffer) {
            Poll::Ready(read) => read.ok().map(|()| buffer.filled().to_vec()),
            Poll::Pending => None,
        }
    }

    fn write(pipe: &mut Pipe, bytes: &[u8]) -> bool {
        let signal = Signal::new();
        Pin::new(pipe).poll_write(&mut signal.context(), bytes).is_ready()
    }

    #[test]
    fn what_is_fed_is_read_and_then_the_end() {
        let mut pipe = Pipe::default();
        assert_eq!(read(&mut pipe, 4), None, "nothing yet");
        pipe.feed(b"abc");
        pipe.end();
        assert_eq!(read(&mut pipe, 2), Some(b"ab".to_vec()));
        assert_eq!(read(&mut pipe, 2), Some(b"c".to_vec()));
        assert_eq!(read(&mut pipe, 2), Some(Vec::new()), "the end");
    }

    #[test]
    fn a_full_pipe_takes_nothing_until_it_is_drained() {
        let mut pipe = Pipe::default();
        assert!(write(&mut pipe, &[b'x'; OUTPUT_BYTES]));
        assert!(!write(&mut pipe, b"y"));
        let mut output = BytesMut::from(&b"before"[..]);
        assert!(pipe.drain(&mut output), "h2 needs a poll");
        assert_eq!(output.len(), OUTPUT_BYTES + 6);
        assert!(write(&mut pipe, b"y"));
        output.clear();
        assert!(!pipe.drain(&mut output));
        assert_eq!(&output[..], b"y");
    }
}
