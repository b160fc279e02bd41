//! The body of an answer: framed, counted, and handed to the kernel as far as it takes it.

use super::{BodyFraming, Exchange, Gone, Phase};
use crate::clock::milliseconds;
use crate::descriptors::Counted;
use crate::meter::Meter;
use crate::output::Spill;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

impl<'a> Exchange<'a> {
    /// Adds body bytes. Returns how many were taken: fewer than all when neither the client nor memory nor disk take
    /// more; then [`Exchange::wait_for_client`] and offer the rest again.
    ///
    /// # Errors
    /// When the client is gone.
    pub fn write(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let Phase::Body(framing) = self.phase else {
            return Ok(bytes.len());
        };
        if self.gone {
            return Err(Gone);
        }
        match framing {
            BodyFraming::None => Ok(bytes.len()),
            BodyFraming::Raw => self.push(bytes),
            BodyFraming::Length(left) => {
                let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let taken = self.push(&bytes[..wanted])?;
                self.phase = Phase::Body(BodyFraming::Length(left - taken as u64));
                if wanted < bytes.len() {
                    self.faulty = Some("the body is longer than the announced content-length; the rest was left out");
                }
                Ok(if taken == wanted { bytes.len() } else { taken })
            }
            BodyFraming::Chunked if bytes.is_empty() => Ok(0),
            BodyFraming::Chunked => {
                let mut line = [0u8; 20];
                let mut rest = &mut line[..];
                let _ = write!(rest, "{:x}\r\n", bytes.len());
                let unused = rest.len();
                let used = line.len() - unused;
                self.connection.output.buffer().extend_from_slice(&line[..used]);
                self.write_chunk(bytes, bytes.len() as u64)
            }
            BodyFraming::Chunk(left) => self.write_chunk(bytes, left),
        }
    }

    /// Goes on with a chunk whose size has been written: it has to become as long as that.
    fn write_chunk(&mut self, bytes: &[u8], left: u64) -> Result<usize, Gone> {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.phase = Phase::Body(BodyFraming::Chunk(left));
        let taken = self.push(&bytes[..wanted])?;
        self.phase = Phase::Body(BodyFraming::Chunk(left - taken as u64));
        if taken as u64 == left {
            self.connection.output.buffer().extend_from_slice(b"\r\n");
            self.phase = Phase::Body(BodyFraming::Chunked);
        }
        Ok(taken)
    }

    /// Adds the rest of the body, of which there is so little that it needs no room among what waits for clients.
    pub(crate) fn write_few(&mut self, bytes: &[u8]) {
        let Phase::Body(BodyFraming::Length(left)) = self.phase else {
            return;
        };
        let unlimited = Spill {
            memory_bytes: usize::MAX,
            ..self.spill()
        };
        if let Ok(taken) = self.push_within(bytes, unlimited) {
            self.phase = Phase::Body(BodyFraming::Length(left.saturating_sub(taken as u64)));
        }
    }

    /// Adds a file as the body: `length` bytes from `offset`. They never enter this process.
    pub(crate) fn write_file(&mut self, file: Arc<Counted<File>>, offset: u64, length: u64) {
        if let Phase::Body(BodyFraming::Length(left)) = self.phase {
            let length = length.min(left);
            self.connection.output.push_file(file, offset, offset + length);
            self.body_bytes += length;
            self.phase = Phase::Body(BodyFraming::Length(left - length));
        }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<usize, Gone> {
        let spill = self.spill();
        self.push_within(bytes, spill)
    }

    /// What may wait for the client.
    fn spill(&self) -> Spill<'a> {
        let config = &self.engine.config;
        Spill {
            memory_bytes: config.response_memory_bytes,
            disk_bytes: config.response_disk_bytes,
            directory: &config.temp_dir,
            descriptors: &config.descriptors,
        }
    }

    fn push_within(&mut self, bytes: &[u8], spill: Spill<'_>) -> Result<usize, Gone> {
        let taken = self.connection.push_output(bytes, spill).map_err(|_| self.lost())?;
        self.body_bytes += taken as u64;
        Ok(taken)
    }

    /// Hands what was written to the kernel, as far as it takes it at once: for bodies that come piece by piece. False
    /// when the client is gone.
    pub fn flush(&mut self) -> bool {
        self.flushed = true;
        match self.connection.flush_output() {
            Ok(_) => true,
            Err(_) => {
                self.lost();
                false
            }
        }
    }

    /// Blocks until the client takes more, at most for the write time-out. Call it without holding any lock of a language.
    ///
    /// # Errors
    /// When the client is gone, took nothing for that long or, in all waits together, fell behind `write_min_rate` by it.
    pub fn wait_for_client(&mut self) -> Result<(), Gone> {
        let mut wait = self.wait();
        wait.run();
        self.waited(wait)
    }

    /// The same in steps: what to wait for, apart from the exchange, which others may use meanwhile.
    pub fn wait(&self) -> Wait {
        Wait {
            socket: Arc::clone(self.connection.socket()),
            timeout: self.engine.config.write_timeout,
            began: milliseconds(),
            polled: Err(Errno::INTR),
        }
    }

    /// To be called after [`Wait::run`], whether that has run or not.
    ///
    /// # Errors
    /// As for [`Exchange::wait_for_client`].
    pub fn waited(&mut self, wait: Wait) -> Result<(), Gone> {
        let before = self.connection.output.progress();
        // Poll speaks up only when a third of the socket's buffer is free: a slow reader shows when it is offered more.
        let has_moved =
            self.flush() && (self.connection.output.is_empty() || self.connection.output.progress() > before);
        let goes_on = match wait.polled {
            Ok(1..) | Err(Errno::INTR) => !self.gone,
            Ok(0) => has_moved,
            _ => false,
        };
        if goes_on && self.is_fast_enough(wait.began) {
            Ok(())
        } else {
            Err(self.lost())
        }
    }

    /// Whether the client takes enough in all the time that it is waited for, of which a part began at `began`.
    fn is_fast_enough(&mut self, began: u64) -> bool {
        let rate = self.engine.config.write_rate();
        let now = milliseconds();
        let taken = self.body_bytes.saturating_sub(self.connection.output.pending());
        let waits = self.waits.get_or_insert(Waits {
            meter: Meter::begin(began),
            until: began,
            taken: 0,
        });
        waits.meter.forgive(began.saturating_sub(waits.until));
        waits.meter.moved(taken.saturating_sub(waits.taken), now, rate);
        waits.until = now;
        waits.taken = taken;
        waits.meter.deadline(rate) > now
    }

    /// Whether the kernel has everything that was written.
    pub fn is_flushed(&mut self) -> bool {
        self.flush() && self.connection.output.is_empty()
    }

    /// Whether what follows is framed in chunks; `None` when nothing can follow.
    pub(crate) fn stream_framing(&self) -> Option<bool> {
        match self.phase {
            Phase::Body(BodyFraming::Chunked) if !self.gone => Some(true),
            Phase::Body(BodyFraming::Raw | BodyFraming::Length(1..)) if !self.gone => Some(false),
            _ => None,
        }
    }
}

/// What several waits for one client have in common.
#[derive(Debug)]
pub(super) struct Waits {
    meter: Meter,
    /// When the last one ended, and what the client had taken by then.
    until: u64,
    taken: u64,
}

/// A wait for a client; see [`Exchange::wait`].
#[derive(Debug)]
pub struct Wait {
    socket: Arc<Counted<OwnedFd>>,
    timeout: Duration,
    began: u64,
    polled: rustix::io::Result<usize>,
}

impl Wait {
    /// Blocks until the client takes more or is gone, at most for the write time-out. A signal ends it early.
    pub fn run(&mut self) {
        let timeout = Timespec {
            tv_sec: self.timeout.as_secs() as _,
            tv_nsec: self.timeout.subsec_nanos() as _,
        };
        self.polled = poll(&mut [PollFd::new(&*self.socket, PollFlags::OUT)], Some(&timeout));
    }
}
