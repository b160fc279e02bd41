//! The file sender: native threads of a worker that send files, a slice of each in turn. One of them works at a time; the
//! others are there for when a disk does not answer.
//!
//! A read from a slow disk blocks its thread, and a large file takes long to copy. Requests must not wait for either,
//! so no other thread sends files. A connection whose socket is full goes back to the reactor until it is writable.

use super::send_queue::{SendQueue, THREADS};
use super::{record, Engine};
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::work_queue::Turn;
use std::sync::{Arc, Weak};

/// How much lower its priority is than that of the threads that run requests. On an idle processor this makes no
/// difference.
const NICENESS: i32 = 5;

/// The connections that wait for a turn, in order.
#[derive(Default)]
pub(super) struct FileSender(SendQueue<Box<Connection>>);

impl FileSender {
    /// Starts the threads, which do not keep the engine alive.
    pub(super) fn start(engine: &Arc<Engine>) -> std::io::Result<()> {
        for _ in 0..THREADS {
            let file_sender = Arc::clone(&engine.file_sender);
            let engine = Arc::downgrade(engine);
            std::thread::Builder::new()
                .name("fairlead sender".into())
                .spawn(move || file_sender.run(&engine))?;
        }
        Ok(())
    }

    /// Ends the threads; returns the connections that are left.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(super) fn stop(&self) -> Vec<Box<Connection>> {
        self.0.stop()
    }

    fn run(&self, engine: &Weak<Engine>) {
        // On Linux this applies to the calling thread only. Elsewhere, or without permission, the priority stays the
        // same.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::nice(NICENESS);
        loop {
            let next = self.0.next();
            let Some(engine) = engine.upgrade() else { return };
            match next {
                Turn::Of((disk, connection)) => {
                    engine.send_slice(connection);
                    // Not earlier: if the connection is back in the queue, this thread goes on with it.
                    self.0.ended(disk);
                }
                Turn::Idle => {}
                Turn::Over => return,
            }
        }
    }
}

impl Engine {
    fn send_slice(&self, mut connection: Box<Connection>) {
        self.worker.guard("the file sender", || {
            self.worker.fault("send a slice");
            let was_late = connection.is_late();
            let next = connection.send(&self.worker.config, Millis::now());
            if was_late && next == Next::Close {
                record::slow_client(&self.worker);
            }
            self.settle_elsewhere(connection, next);
        });
    }

    /// Hands a connection with a file to the file sender.
    pub(super) fn hand_to_file_sender(&self, connection: Box<Connection>) {
        let disk = connection.stream.output.disk();
        if let Err(connection) = self.file_sender.0.push(disk, connection) {
            self.close(connection);
        }
    }
}
