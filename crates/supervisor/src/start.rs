//! The start: what the command has left for this program.
//!
//! Standard input is a link on which the command has sent everything, because that is how a program gets descriptors without naming
//! their numbers. The first message has the real standard input.

use crate::configuration::Configuration;
use crate::link::{Link, Message, Received};
use fairlead_shared_memory::SharedMemory;
use rustix::process::Pid;
use rustix::stdio::{dup2_stdin, stdin};
use std::os::fd::OwnedFd;

/// Everything that a supervisor begins with.
pub struct Start {
    /// The configuration that the command has read.
    pub configuration: Configuration,
    /// The memory for the workers, which the first spawner has mapped, too.
    pub memory: SharedMemory,
    /// The process that the command has forked: the first spawner, or the sole process.
    pub first: Pid,
    /// Our end of its link.
    pub link: Link,
}

impl Start {
    /// Reads the messages of the command from standard input, and puts the real one in its place.
    ///
    /// # Errors
    /// A sentence, if this program was not started by the command.
    pub fn receive() -> Result<Start, String> {
        let not_started = || "this program is started by the command `fairlead`".to_string();
        let link = Link::new(stdin().try_clone_to_owned().map_err(|_| not_started())?);
        let mut next = |kind: &str| match link.receive() {
            Received::Message(message) if message.kind == kind => Ok(message),
            _ => Err(not_started()),
        };
        let input = next("stdin")?;
        if let Some(input) = input.descriptors.first() {
            dup2_stdin(input).map_err(|error| error.to_string())?;
        }
        Start::from_messages(next("settings")?, next("shared")?, next("first")?)
    }

    /// From the same messages.
    ///
    /// # Errors
    /// A sentence.
    pub fn from_messages(settings: Message, shared: Message, first: Message) -> Result<Start, String> {
        let damaged = || "the command has left something else".to_string();
        let pid = first.number(0).and_then(Pid::from_raw).ok_or_else(damaged)?;
        let link = first.descriptors.into_iter().next().ok_or_else(damaged)?;
        let mut descriptors = settings.descriptors.into_iter();
        let file = descriptors.next().ok_or_else(damaged)?;
        let shared: [OwnedFd; SharedMemory::DESCRIPTORS] = shared.descriptors.try_into().map_err(|_| damaged())?;
        Ok(Start {
            configuration: Configuration::read(file, descriptors.collect(), None)?,
            memory: SharedMemory::adopt(shared).map_err(|error| error.to_string())?,
            first: pid,
            link: Link::new(link),
        })
    }
}
