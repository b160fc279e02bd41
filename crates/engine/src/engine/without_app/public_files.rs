//! Requests for files of the public folder.
//!
//! The thread that polls serves them: it reads only files that are in the kernel's memory, and leaves the others to the
//! lookup threads.

use super::responder::Responder;
use super::Served;
use crate::connection::Connection;
use crate::exchange::upgrade_offer;
use crate::files::{Found, Public, Reach, NO_ANSWER, UNREACHABLE};
use crate::http::request::Request;
use fairlead_wire::TargetForm;
use rustix::io::{self, Errno};
use std::sync::atomic::Ordering::Relaxed;

/// Responds to the request that is ready, if it is for a file.
pub(super) fn serve(responder: &Responder, public: &Public, connection: &mut Connection) -> Option<Served> {
    let request = &connection.stream.request;
    let is_for_files = matches!(request.method(), b"GET" | b"HEAD")
        && !request.has_body()
        && request.target_form() != TargetForm::Asterisk
        && upgrade_offer(request).is_none();
    if !is_for_files {
        return None;
    }
    let found = match responder.services.worker.fault("look in memory") {
        true => Err(Errno::AGAIN),
        false => public.find(path_of(request), &|| request.accepted_codings(), Reach::Memory),
    };
    match found {
        Err(Errno::AGAIN) => Some(Served::LookUp),
        found => respond(responder, connection, found).map(|close| Served::Responded { close }),
    }
}

/// Writes the response if the request is for a file. Returns true if the connection ends with it.
pub(super) fn respond(responder: &Responder, connection: &mut Connection, found: io::Result<Found>) -> Option<bool> {
    if let Ok(Found::Nothing) = found {
        return None;
    }
    responder.services.worker.counters().files.fetch_add(1, Relaxed);
    Some(responder.respond(connection, |exchange| match found {
        Ok(Found::Document(document, content)) => exchange.respond_with(&document, &content),
        Ok(Found::Folder) => exchange.redirect_to_folder(),
        Ok(Found::Nothing) => {}
        Err(error) => {
            exchange.blame(if error == Errno::TIMEDOUT {
                NO_ANSWER
            } else {
                UNREACHABLE
            });
            exchange.respond_plainly_with(503, &[(b"retry-after", b"1")]);
        }
    }))
}

/// Path of a request, for [`Public::find`].
pub(in crate::engine) fn path_of(request: &Request) -> &[u8] {
    match request.path() {
        b"" => b"/",
        path => path,
    }
}
