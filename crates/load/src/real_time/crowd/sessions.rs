//! Sessions begin, with the first handshake request, and end.

use super::{Crowd, Target};
use crate::dial::dial;
use crate::limits::describe;
use crate::options::RealTime;
use crate::real_time::activity::{Activity, Sequel};
use crate::real_time::ending::Ending;
use crate::real_time::session::{Phase, Protocol};
use crate::received::Trouble;
use crate::request;

use crate::websocket::handshake::{self, Offer};
use rustix::io::{self, Errno};
use rustix::net::SocketAddrAny;
use std::net::Ipv4Addr;

impl Crowd<'_> {
    pub(super) fn open(&mut self, number: usize, activity: &mut impl Activity) -> io::Result<()> {
        let session = &mut self.sessions[number];
        let target = &self.targets[session.group];
        session.since = self.now;
        loop {
            let address = &target.addresses[session.address];
            match dial(address, source(self.source, address)) {
                Ok((socket, _)) => {
                    let handshake = handshake_request(self.options, target, session.key());
                    session.outbox.raw(&handshake);
                    return session.dialled(socket, &self.poller, number);
                }
                Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE)
                    if self.source < u8::MAX && source(2, address).is_some() =>
                {
                    self.source += 1;
                }
                // The queue of a unix socket is full, or the queue of a busy machine.
                Err(Errno::AGAIN) => {
                    self.opening -= 1;
                    self.waiting.push_back(number);
                    return Ok(());
                }
                Err(error) => {
                    self.refused(number, error, activity);
                    return Ok(());
                }
            }
        }
    }

    pub(super) fn end(&mut self, number: usize, ending: Ending, activity: &mut impl Activity) {
        let session = &mut self.sessions[number];
        match session.phase {
            Phase::Over => return,
            Phase::Live => self.live -= 1,
            _ => self.opening -= 1,
        }
        // Sends the close frame that responds to the server's.
        let _ = session.write(&self.poller, number);
        match activity.ended(number, ending, self.now) {
            Sequel::Lost => self.endings.add(ending),
            Sequel::Done => {}
            Sequel::Reopened => {
                session.close(Phase::Waiting);
                return self.waiting.push_back(number);
            }
        }
        session.close(Phase::Over);
    }

    /// Connecting failed: tries the next address; after the last one, the session ends.
    pub(super) fn refused(&mut self, number: usize, error: Errno, activity: &mut impl Activity) {
        let session = &mut self.sessions[number];
        session.address += 1;
        if session.address < self.targets[session.group].addresses.len() {
            session.close(Phase::Waiting);
            self.opening -= 1;
            self.waiting.push_front(number);
            return;
        }
        if !self.reached {
            self.unreachable = Some(describe(error));
        }
        self.end(number, Ending::Connect, activity);
    }

    /// TLS failed, during the handshake or later.
    pub(super) fn insecure(&mut self, number: usize, trouble: Trouble, activity: &mut impl Activity) {
        let is_lasting = matches!(trouble, Trouble::Tls(_));
        let why = trouble.words();
        if is_lasting && !self.reached {
            self.unreachable = Some(why.clone());
        }
        self.endings.because(why);
        self.end(number, Ending::Tls, activity);
    }
}

/// The local address to connect from, if there is a choice: each loopback address of IPv4 has its own ports.
fn source(number: u8, address: &SocketAddrAny) -> Option<Ipv4Addr> {
    let address = std::net::SocketAddr::try_from(address.clone()).ok()?;
    (number > 1 && address.is_ipv4() && address.ip().is_loopback()).then(|| Ipv4Addr::new(127, 0, 0, number))
}

/// The first bytes to send; empty if there is no handshake.
fn handshake_request(options: &RealTime, target: &Target, key: &str) -> Vec<u8> {
    let offer = || Offer {
        deflate: options.deflate,
        protocol: options.protocol.clone(),
    };
    let fields = match target.protocol {
        Protocol::Http => return Vec::new(),
        Protocol::WebSocket => handshake::fields(key, &offer()),
        Protocol::EventStream => vec![
            ("Accept", "text/event-stream".to_owned()),
            ("Cache-Control", "no-cache".to_owned()),
        ],
    };
    request::head("GET", &target.url.path, &target.url, fields, &options.headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn only_the_loopback_of_ipv4_has_other_addresses_to_come_from() {
        let source = |number, address: &str| {
            let address: SocketAddr = address.parse().expect("an address");
            source(number, &address.into())
        };
        assert_eq!(
            source(1, "127.0.0.1:80"),
            None,
            "the system's own choice is good enough"
        );
        assert_eq!(source(2, "127.0.0.1:80"), Some(Ipv4Addr::new(127, 0, 0, 2)));
        assert_eq!(source(2, "192.0.2.1:80"), None);
        assert_eq!(source(2, "[::1]:80"), None);
    }
}
