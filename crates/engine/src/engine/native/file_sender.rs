//! File sender: native threads of a worker that send files, one slice of each in turn. One thread works at a time; the
//! others replace it while a disk does not respond.
//!
//! A read from a slow disk blocks its thread, and a large file takes long to copy. Requests must wait for neither, so
//! no other thread sends files. A connection with a full socket goes back to the reactor until it is writable.

use super::send_queue::{SendQueue, THREADS};
use crate::clock::Millis;
use crate::connection::{Connection, Next};
use crate::engine::record;
use crate::engine::sink::{Move, Sink};
use crate::work_queue::Item;
use crate::worker::Worker;
use std::sync::{Arc, Weak};

/// Added to the niceness of the process: threads that run requests go first. On an idle processor this makes no
/// difference.
const NICENESS: i32 = 5;

/// See the head of this file.
pub(in crate::engine) struct FileSender {
    worker: Arc<Worker>,
    /// The connections that wait for a turn, in order.
    queue: Arc<Queue>,
    sink: Weak<dyn Sink>,
}

type Queue = SendQueue<Box<Connection>>;

impl FileSender {
    pub(in crate::engine) fn new(worker: &Arc<Worker>, sink: Weak<dyn Sink>) -> Arc<FileSender> {
        Arc::new(FileSender {
            worker: Arc::clone(worker),
            queue: Arc::default(),
            sink,
        })
    }

    /// Starts the threads, which do not keep the engine alive.
    pub(in crate::engine) fn start(self: &Arc<Self>) -> std::io::Result<()> {
        for _ in 0..THREADS {
            let (queue, me) = (Arc::clone(&self.queue), Arc::downgrade(self));
            std::thread::Builder::new()
                .name("fairlead sender".into())
                .spawn(move || run(&queue, &me))?;
        }
        Ok(())
    }

    /// Ends the threads; returns the remaining connections.
    #[expect(clippy::vec_box, reason = "a connection moves as its box")]
    pub(in crate::engine) fn stop(&self) -> Vec<Box<Connection>> {
        self.queue.stop()
    }

    /// Queues a connection with a file for the threads. If they have ended, the connection ends.
    pub(in crate::engine) fn push(&self, connection: Box<Connection>) {
        let disk = connection.stream.output.disk();
        drop(self.queue.push(disk, connection));
    }

    fn send_slice(&self, mut connection: Box<Connection>, sink: &dyn Sink) {
        self.worker.guard("the file sender", || {
            self.worker.fault("send a slice");
            let was_late = connection.is_late();
            let next = connection.send(&self.worker.config, Millis::now());
            if was_late && next == Next::Close {
                record::slow_client(&self.worker);
            }
            sink.put(Move::Settle(connection, next));
        });
    }
}

fn run(queue: &Queue, file_sender: &Weak<FileSender>) {
    // On Linux this applies to the calling thread only. On other systems, or without permission, the priority does not
    // change.
    fairlead_system::threads::be_nice(NICENESS);
    loop {
        let next = queue.next();
        let Some(file_sender) = file_sender.upgrade() else {
            return;
        };
        let Some(sink) = file_sender.sink.upgrade() else { return };
        match next {
            Item::Next((disk, connection)) => {
                file_sender.send_slice(connection, &*sink);
                // Not earlier: if the connection is back in the queue, this thread continues with it.
                queue.ended(disk);
            }
            Item::Idle => {}
            Item::Stopped => return,
        }
    }
}
