//! The protocol of sd_notify(3).

mod outbox;
mod reporter;

pub use reporter::{NotifyState, Report, Reporter, Restart, Told};

use fairlead_system::sockets;
use outbox::{Message, Outbox};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::time::{clock_gettime, ClockId};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// The variable with the path of systemd's socket, or its abstract name after an "@".
const SOCKET: &str = "NOTIFY_SOCKET";

/// Puma's variable that makes the server ignore systemd.
const SKIP: &str = "PUMA_SKIP_SYSTEMD";

/// The name of the listeners in systemd's store of descriptors.
const NAME: &str = "fairlead";

/// The systemd that watches this process. Sending never waits: if the queue of systemd is full, a message is sent
/// later.
#[derive(Debug)]
pub struct Systemd {
    outbox: Outbox,
    watchdog: Option<Duration>,
}

impl Systemd {
    /// The systemd that the variables of this process name; `None` without one.
    ///
    /// # Errors
    /// If there is no descriptor, or the name is too long.
    pub fn from(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Option<Systemd>> {
        let name = variable(SOCKET).unwrap_or_default();
        if variable(SKIP).is_some() {
            return Ok(None);
        }
        let Some(address) = address(&name)? else {
            return Ok(None);
        };
        let socket = sockets::open(AddressFamily::UNIX, SocketType::DGRAM)?;
        Ok(Some(Systemd {
            outbox: Outbox::new(socket, address),
            watchdog: watchdog(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID")),
        }))
    }

    /// Time without a heartbeat after which systemd ends the service; `None` if it never does.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// All workers serve.
    pub fn ready(&mut self) {
        self.outbox.send(Message::State("READY=1".into()));
    }

    /// A restart has begun. The time identifies the reload request of systemd.
    pub fn reloading(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.outbox
            .send(Message::Reload(format!("RELOADING=1\nMONOTONIC_USEC={microseconds}")));
    }

    /// The server ends.
    pub fn stopping(&mut self) {
        self.outbox.send(Message::State("STOPPING=1".into()));
    }

    /// One line, which `systemctl status` shows.
    pub fn status(&mut self, text: &str) {
        self.outbox.send(Message::Status(format!("STATUS={text}")));
    }

    /// The server is alive.
    pub fn alive(&mut self) {
        self.outbox.send(Message::Alive);
    }

    /// Gives systemd a listener to keep. It passes the listener to the next start of the service, unless the service
    /// has been stopped in between.
    ///
    /// # Errors
    /// If there is no descriptor.
    pub fn store(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        let text = format!("FDSTORE=1\nFDNAME={NAME}\nFDPOLL=0");
        self.outbox.send(Message::Store(text, listener.try_clone_to_owned()?));
        Ok(())
    }

    /// Sends the queued messages, as far as possible. Returns false if some are left.
    pub fn flush(&mut self) -> bool {
        self.outbox.flush()
    }

    /// Returns true if messages are queued.
    pub fn is_behind(&self) -> bool {
        !self.outbox.is_empty()
    }
}

/// `None` if the name has no known form.
fn address(name: &OsStr) -> io::Result<Option<SocketAddrUnix>> {
    Ok(match name.as_bytes() {
        [b'@', name @ ..] if !name.is_empty() => Some(sockets::abstract_address(name)?),
        [b'/', _, ..] => Some(SocketAddrUnix::new(name)?),
        _ => None,
    })
}

/// `pid`: the process to which the watchdog applies, if it is named.
fn watchdog(microseconds: Option<OsString>, pid: Option<OsString>) -> Option<Duration> {
    let microseconds: u64 = microseconds?.to_str()?.parse().ok()?;
    let is_ours = pid.is_none_or(|pid| pid == *std::process::id().to_string());
    (microseconds > 0 && is_ours).then(|| Duration::from_micros(microseconds))
}

#[cfg(test)]
mod tests;
