//! The start: receives the state from the command.
//!
//! Standard input is a link on which the command has sent everything, because a link can carry descriptors without
//! fixed numbers. The first message has the real standard input.

use crate::configuration::Configuration;
use crate::hot_restart_state::{Arrival, Comeback};
use crate::link::{Link, Message, Received};
use crate::settings::SystemText;
use fairlead_shared_memory::SharedMemory;
use rustix::process::Pid;
use rustix::stdio::{dup2_stdin, stdin};
use std::os::fd::OwnedFd;

/// The possible starts of this program.
pub enum Beginning {
    /// A server that the command starts.
    Command(Box<Start>),
    /// A server that a program of another version has supervised.
    Arrival(Arrival),
    /// A server that this program has supervised before another program did.
    Comeback(Comeback),
}

impl Beginning {
    /// Reads the messages on standard input, and restores the real one.
    ///
    /// # Errors
    /// A sentence, if the command has not started this program.
    pub fn receive() -> Result<Beginning, String> {
        let link = Link::new(stdin().try_clone_to_owned().map_err(|error| error.to_string())?);
        let input = next(&link, "stdin")?;
        if let Some(input) = input.descriptors.first() {
            dup2_stdin(input).map_err(|error| error.to_string())?;
        }
        match link.receive() {
            Received::Message(first) if first.kind == "handover" => {
                Arrival::receive(first, &link).map(Beginning::Arrival)
            }
            Received::Message(first) if first.kind == "returned" => {
                Comeback::receive(first, &link).map(Beginning::Comeback)
            }
            Received::Message(first) => Start::read(first, &link).map(|start| Beginning::Command(Box::new(start))),
            _ => Err(foreign()),
        }
    }
}

/// Everything that a supervisor needs to start.
pub struct Start {
    /// The configuration that the command has read.
    pub configuration: Configuration,
    /// The memory for the workers, which the first spawner has mapped, too.
    pub memory: SharedMemory,
    /// The process that the command has forked: the first spawner, or the sole process.
    pub first: Pid,
    /// The supervisor's end of its link.
    pub link: Link,
    /// Set if the first process is this one: it serves beside the supervisor.
    pub resident: Option<Resident>,
    /// Set if this is not the program of the supervisor.
    pub caller: Option<Caller>,
}

/// A program that has called this library. The supervisor program replaces it after a restart.
#[derive(Debug)]
pub struct Caller {
    /// The supervisor program.
    pub successor: OwnedFd,
    /// The pid file that the calling program would remove at its end, absolute.
    pub pid_file: Option<SystemText>,
}

/// A sole process that is the process of the supervisor. It ends when its end of the link is shut down.
#[derive(Clone, Copy, Debug)]
pub struct Resident {
    /// Aborts its requests and closes its listeners and connections, without waiting: this replaces killing it.
    pub stop: fn(),
}

impl Start {
    /// Reads the messages of the command from a link.
    ///
    /// # Errors
    /// A sentence, if a message is missing or damaged.
    pub fn receive_from(link: &Link) -> Result<Start, String> {
        let settings = next(link, "settings")?;
        Start::read(settings, link)
    }

    fn read(settings: Message, link: &Link) -> Result<Start, String> {
        if settings.kind != "settings" {
            return Err(foreign());
        }
        let (listeners, shared) = listeners(link)?;
        let first = next(link, "first")?;
        let pid = first.number(0).and_then(Pid::from_raw).ok_or_else(damaged)?;
        let file = settings.descriptors.into_iter().next().ok_or_else(damaged)?;
        let shared: [OwnedFd; SharedMemory::DESCRIPTORS] = shared.descriptors.try_into().map_err(|_| damaged())?;
        Ok(Start {
            configuration: Configuration::read(file, listeners, None)?,
            memory: SharedMemory::adopt(shared).map_err(|error| error.to_string())?,
            first: pid,
            link: Link::new(first.descriptors.into_iter().next().ok_or_else(damaged)?),
            resident: None,
            caller: None,
        })
    }
}

/// The listeners, as many per message as a message can carry, and the next message.
fn listeners(link: &Link) -> Result<(Vec<OwnedFd>, Message), String> {
    let mut descriptors = Vec::new();
    loop {
        match link.receive() {
            Received::Message(message) if message.kind == "listeners" => descriptors.extend(message.descriptors),
            Received::Message(message) if message.kind == "shared" => return Ok((descriptors, message)),
            _ => return Err(damaged()),
        }
    }
}

fn next(link: &Link, kind: &str) -> Result<Message, String> {
    match link.receive() {
        Received::Message(message) if message.kind == kind => Ok(message),
        _ => Err(foreign()),
    }
}

fn foreign() -> String {
    "start this program with the command `fairlead`".into()
}

fn damaged() -> String {
    "the command has sent a message that this program does not know".into()
}
