//! Responses to programs that check if the server accepts requests (`/ready`) and if it must be replaced (`/live`).
//! They contain nothing that needs a token.

use super::host::Host;
use super::request::Request;
use super::response::Response;
use super::status::{Child, ServerState, Status};
use serde::Serialize;

#[derive(Serialize)]
struct Health<T> {
    status: T,
}

/// The response to a probe; `None` for another path.
pub(super) fn answer(request: &Request, host: &dyn Host) -> Option<Response> {
    match request.path() {
        b"/ready" => {
            let status = host.status();
            let code = if is_ready(&status) { 200 } else { 503 };
            Some(match status.pause {
                Some(_) if code == 200 => Response::json(&Health { status: "paused" }),
                _ => Response::json_with(code, &Health { status: status.state }),
            })
        }
        // The response itself proves that the supervisor's loop runs.
        b"/live" => Some(Response::json(&Health { status: "live" })),
        _ => None,
    }
}

/// The old workers serve while new workers replace them.
pub(super) fn is_ready(status: &Status) -> bool {
    matches!(status.state, ServerState::Ready | ServerState::Restarting) && status.children.iter().any(Child::serves)
}
