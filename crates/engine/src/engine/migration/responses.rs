//! The rest of a response that migrates with its connection (`connections.rs`). Both sides.

use super::sent_files::SentFiles;
use crate::clock::Nanos;
use crate::cluster::queues::IncomingResponse;
use crate::connection::saved_response::SavedResponse;
use crate::connection::Connection;
use crate::engine::ends;
use crate::exchange::Services;
use crate::spool::Spool;
use crate::worker::Worker;
use std::sync::Arc;

/// While more connections than that are under way, no large response migrates.
pub(super) const MOST_LARGE: u64 = 4;

/// As much as the usual response has in memory.
const LARGE: u64 = 64 * 1024;

/// See the head of this file.
pub(super) struct ResponseMigration {
    worker: Arc<Worker>,
    spool: Arc<Spool>,
    files: SentFiles,
}

impl ResponseMigration {
    pub(super) fn new(services: &Services) -> ResponseMigration {
        ResponseMigration {
            worker: Arc::clone(&services.worker),
            spool: Arc::clone(&services.spool),
            files: SentFiles::new(),
        }
    }

    /// The rest of the response of `connection`. `None` if it has none, or it cannot migrate now.
    pub(super) fn save(&self, connection: &Connection) -> Option<SavedResponse> {
        connection.save_response(|file| self.files.identify(file))
    }

    /// Continues the response of another worker. Returns false if it is not valid.
    pub(super) fn take(&self, connection: &mut Connection, response: IncomingResponse, paid: Nanos) -> bool {
        let IncomingResponse { bytes, file } = response;
        let file = match (file, SavedResponse::file_id(&bytes)) {
            (Some(file), Some(id)) => Some(self.files.open(id, file, &self.worker.config.descriptors)),
            _ => None,
        };
        let next = ends::after_response(&self.worker, false);
        connection.continue_response((&bytes, file), paid, next, (&self.worker, &self.spool))
    }
}

/// True if the rest of its response has many bytes in memory.
pub(super) fn is_large(connection: &Connection) -> bool {
    connection.rest_in_memory() > LARGE
}
