//! The answer of the app when it is asked to hand a client over to another worker.

/// Most bytes of a state.
pub(super) const MOST_STATE: usize = 1024 * 1024;

/// See the head of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handover {
    /// The app in the other worker gets these bytes, and continues with them. At most 1 MiB.
    State(Vec<u8>),
    /// The app has no state for the client, which needs none.
    Native,
    /// The app cannot continue with this client in another process. It is served on, and closed before its worker ends.
    Refused,
}
