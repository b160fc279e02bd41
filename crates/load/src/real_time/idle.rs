//! Idle sockets: opened and held, to measure their cost for the server. Pings get their pongs.

use super::activity::Activity;
use super::crowd::{Crowd, Group};
use super::ending::Ending;
use super::outbox::Outbox;
use super::session::Protocol;
use super::Found;
use crate::clock::{nanos, Nanos};
use crate::options::{RealTime, Transport};
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Results of holding the sockets.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Messages that arrived in the meantime.
    pub(crate) messages: u64,
    /// Time for opening all of them, and time of holding them.
    pub(crate) opening: Nanos,
    pub(crate) held: Nanos,
}

pub(crate) fn run(options: &RealTime, duration: Duration, stop: &AtomicBool) -> Result<Found<Held>, String> {
    let protocol = protocol(options.transport);
    let group = Group {
        protocol,
        url: &options.url,
        count: options.connections,
    };
    let mut crowd = Crowd::new(options, &[group], stop)?;
    let mut held = Held::default();
    let begun = crowd.now;
    crowd.gather(&mut held)?;
    let opened = crowd.now;
    if !options.quiet {
        // Scripts that measure the server from outside wait for this line.
        let _ = writeln!(std::io::stderr(), "holding {} connections", crowd.live());
    }
    let end = opened.saturating_add(nanos(duration));
    while crowd.now < end && crowd.has_live() && !crowd.is_stopped() {
        crowd.turn(end, &mut held)?;
    }
    (held.opening, held.held) = (opened - begun, crowd.now - opened);
    Ok(Found {
        sockets: crowd.finish(0..options.connections),
        task: held,
    })
}

/// The subscribers' protocol.
pub(crate) fn protocol(transport: Transport) -> Protocol {
    match transport {
        Transport::WebSocket => Protocol::WebSocket,
        Transport::EventStream => Protocol::EventStream,
    }
}

impl Activity for Held {
    fn message(&mut self, _: usize, _: bool, _: &[u8], _: &mut Outbox, _: Nanos) -> Result<(), Ending> {
        self.messages += 1;
        Ok(())
    }
}
