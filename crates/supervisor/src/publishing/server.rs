//! The thread: one connection after the other gets its turn.

use super::connection::{part, Connection, Ending, Part};
use super::{Order, Publish, Wish};
use crate::log::Log;
use fairlead_system::sockets;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::{ioctl_fionbio, Errno};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most connections. Past it, the connection that has been idle longest closes; its process connects again when it publishes.
const MOST: usize = 128;

/// Most bytes of incomplete requests. The connection with most of them gives way.
const MOST_HELD: usize = 64 * 1024 * 1024;

/// Most connections that are accepted before the others get their turn.
const ACCEPTS: usize = 16;

/// Pause when descriptors or memory are short.
const PAUSE: Duration = Duration::from_millis(100);

/// Least time between two log lines about processes.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// A longer wait for a worker does not count as time of the other connections.
const LONG: Duration = Duration::from_millis(50);

pub(super) struct Server {
    listener: OwnedFd,
    /// The address, for log lines.
    place: String,
    publish: Publish,
    order: Arc<Order>,
    connections: Vec<Connection>,
    part: Box<Part>,
    /// The user that the server runs as.
    owner: u32,
    /// The time to accept again, while descriptors are short.
    paused_until: Option<Instant>,
    lines: Lines,
}

/// Log lines about processes, and the number of lines that were left out.
struct Lines {
    log: Log,
    last: Option<Instant>,
    left_out: usize,
}

impl Server {
    pub(super) fn new(
        listener: OwnedFd,
        place: String,
        publish: Publish,
        order: Arc<Order>,
        log: Log,
    ) -> io::Result<Server> {
        ioctl_fionbio(&listener, true)?;
        Ok(Server {
            listener,
            place,
            publish,
            order,
            connections: Vec::new(),
            part: part(),
            owner: rustix::process::geteuid().as_raw(),
            paused_until: None,
            lines: Lines {
                log,
                last: None,
                left_out: 0,
            },
        })
    }

    pub(super) fn run(mut self) {
        while let Ok(true) | Err(_) = self.guarded_turn() {}
    }

    /// A panic closes the connections, and the thread goes on. Returns false at the end.
    fn guarded_turn(&mut self) -> std::thread::Result<bool> {
        let turn = catch_unwind(AssertUnwindSafe(|| self.turn()));
        if turn.is_err() {
            self.connections.clear();
            let text = "[BUG] the thread of the publish socket panicked, see above; it continues";
            self.lines.log.error("defect", text);
            std::thread::sleep(PAUSE);
        }
        turn
    }

    fn turn(&mut self) -> bool {
        let wish = self.order.wish();
        match wish {
            Wish::Serve => self.order.is_obeyed(false),
            Wish::Rest => {
                self.connections.clear();
                self.order.is_obeyed(true);
            }
            Wish::End => return false,
        }
        let ready = self.wait(wish == Wish::Serve);
        if wish == Wish::Serve {
            self.advance(&ready.connections);
            self.expire();
            self.give_way();
            if ready.listener {
                self.accept();
            }
        }
        true
    }

    /// Waits for an order or, if it serves, for something to do.
    fn wait(&self, serves: bool) -> Ready {
        let now = Instant::now();
        let accepts = serves && self.paused_until.is_none_or(|until| until <= now);
        let listener = accepts.then(|| self.listener.as_fd());
        let connections = self.connections.iter().map(AsFd::as_fd);
        let all: Vec<BorrowedFd<'_>> = [self.order.as_fd()]
            .into_iter()
            .chain(listener)
            .chain(connections)
            .collect();
        let mut polled: Vec<PollFd<'_>> = all.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        if poll(&mut polled, self.timeout(now).as_ref()).is_err_and(|error| error != Errno::INTR) {
            std::thread::sleep(PAUSE); // memory is short
            return Ready::default();
        }
        let mut is_ready = polled.iter().skip(1).map(|fd| !fd.revents().is_empty());
        Ready {
            listener: accepts && is_ready.next().unwrap_or(false),
            connections: is_ready.collect(),
        }
    }

    fn timeout(&self, now: Instant) -> Option<Timespec> {
        let deadlines = self.connections.iter().filter_map(Connection::deadline);
        let next = deadlines.chain(self.paused_until.filter(|until| *until > now)).min()?;
        Timespec::try_from(next.saturating_duration_since(now)).ok()
    }

    /// Continues with the connections that are ready. Some end.
    fn advance(&mut self, ready: &[bool]) {
        let mut ready = ready.iter().copied();
        let (mut kept, mut waited) = (Vec::with_capacity(self.connections.len()), Duration::ZERO);
        for mut connection in std::mem::take(&mut self.connections) {
            if !ready.next().unwrap_or(false) {
                kept.push(connection);
                continue;
            }
            let now = Instant::now();
            let publish = &mut self.publish;
            let advanced = connection.advance(now, &mut self.part, publish);
            waited += now.elapsed();
            match advanced {
                Ok(()) => kept.push(connection),
                Err(ending) => self.lines.tell(&self.place, &connection, &ending),
            }
        }
        if waited > LONG {
            kept.iter_mut().for_each(|connection| connection.excuse(waited));
        }
        self.connections = kept;
    }

    fn expire(&mut self) {
        let now = Instant::now();
        let (place, lines) = (&self.place, &mut self.lines);
        self.connections.retain(|connection| {
            let is_late = connection.deadline().is_some_and(|deadline| deadline <= now);
            if is_late {
                lines.tell(
                    place,
                    connection,
                    &Ending::Refused("its message was incomplete for 5 s"),
                );
            }
            !is_late
        });
    }

    fn give_way(&mut self) {
        while self.connections.iter().map(Connection::held).sum::<usize>() > MOST_HELD {
            let largest = self.connections.iter().enumerate();
            let Some((index, _)) = largest.max_by_key(|(_, connection)| connection.held()) else {
                return;
            };
            let connection = self.connections.swap_remove(index);
            let ending = Ending::Refused("incomplete messages take too much memory");
            self.lines.tell(&self.place, &connection, &ending);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            match sockets::accept(&self.listener) {
                Ok((socket, _)) => self.admit(socket),
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return,
                Err(error) => {
                    self.paused_until = Some(Instant::now() + PAUSE);
                    let text = format!("cannot accept a connection to {}: {error}", self.place);
                    // A listener that was shut down belongs to a previous configuration.
                    if error != Errno::INVAL {
                        self.lines.write(&text);
                    }
                    return;
                }
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd) {
        match Connection::new(socket, self.owner, Instant::now()) {
            Ok(connection) => {
                if self.connections.len() >= MOST {
                    let oldest = self.connections.iter().enumerate();
                    let oldest = oldest.min_by_key(|(_, connection)| (connection.held() > 0, connection.used()));
                    let index = oldest.map(|(index, _)| index);
                    index.map(|index| self.connections.swap_remove(index));
                }
                self.connections.push(connection);
            }
            Err((connection, ending)) => self.lines.tell(&self.place, &connection, &ending),
        }
    }
}

/// The descriptors that are ready.
#[derive(Default)]
struct Ready {
    listener: bool,
    /// In the order of the connections.
    connections: Vec<bool>,
}

impl Lines {
    fn tell(&mut self, place: &str, connection: &Connection, ending: &Ending) {
        if let Ending::Refused(reason) = ending {
            self.write(&format!(
                "closed a connection to {place} from {}: {reason}",
                connection.peer()
            ));
        }
    }

    fn write(&mut self, text: &str) {
        let now = Instant::now();
        if self.last.is_some_and(|last| now - last < BETWEEN_LINES) {
            self.left_out += 1;
            return;
        }
        self.last = Some(now);
        match std::mem::take(&mut self.left_out) {
            0 => self.log.warn("publishing", text),
            count => self
                .log
                .warn("publishing", format!("{text} (and {count} other lines like this)")),
        }
    }
}
