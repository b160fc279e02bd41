//! Responses to programs that check if the server accepts requests (`/ready`) and if it must be replaced (`/live`).
//! They contain nothing that needs a token.

use super::host::Host;
use super::request::Request;
use super::response::Response;
use super::status::{Child, ServerState, Status};
use serde::Serialize;

/// In place of the state of a server that was ready: its workers have ended.
const NO_WORKER: &str = "no worker serves";

#[derive(Serialize)]
struct Health<T> {
    status: T,
}

/// The response to a probe; `None` for another path.
pub(super) fn answer(request: &Request, host: &dyn Host) -> Option<Response> {
    match request.path() {
        b"/ready" => {
            let status = host.status();
            Some(match (is_ready(&status), status.pause, status.state) {
                (true, Some(_), _) => Response::json(&Health { status: "paused" }),
                (true, None, state) => Response::json(&Health { status: state }),
                (false, _, ServerState::Ready) => Response::json_with(503, &Health { status: NO_WORKER }),
                (false, _, state) => Response::json_with(503, &Health { status: state }),
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
