//! The answers to programs that decide whether the server gets requests (`/ready`) and whether it must be replaced
//! (`/live`). They say nothing that needs a token.

use super::host::Host;
use super::request::Request;
use super::response::Response;
use super::status::{Child, ServerState, Status};
use serde::Serialize;

#[derive(Serialize)]
struct Health<T> {
    status: T,
}

/// The answer to a probe; `None` for another path.
pub(super) fn answer(request: &Request, host: &dyn Host) -> Option<Response> {
    match request.path() {
        b"/ready" => {
            let status = host.status();
            let code = if is_ready(&status) { 200 } else { 503 };
            Some(Response::json_with(code, &Health { status: status.state }))
        }
        // An answer shows that the loop of the supervisor turns.
        b"/live" => Some(Response::json(&Health { status: "live" })),
        _ => None,
    }
}

/// While new workers take the place of the old ones, these serve.
fn is_ready(status: &Status) -> bool {
    matches!(status.state, ServerState::Ready | ServerState::Restarting) && status.children.iter().any(Child::serves)
}
