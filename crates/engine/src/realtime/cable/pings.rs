//! The pings of Action Cable: a message every three seconds, with the time. A client that hears nothing for six seconds
//! connects again.

use crate::clock::Nanos;
use crate::pubsub::Beat;
use std::time::Duration;

/// The pings, as messages of a channel that no application uses.
pub(in crate::realtime) const PINGS: Beat = Beat {
    channel: b"\0fairlead:cable:pings",
    period: Duration::from_secs(3),
    message,
};

fn message() -> Vec<u8> {
    let seconds = Nanos::now().since_epoch().as_secs();
    format!(r#"{{"type":"ping","message":{seconds}}}"#).into_bytes()
}
