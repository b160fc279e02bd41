//! The messages about certificates between the supervisor and the current spawner. `lib/fairlead/acme/clerk.rb` is the other side.

use super::failure::Failure;
use super::Wall;
use serde::{Deserialize, Serialize};

/// The certificates that a configuration asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Orders {
    /// The folder for the state (`acme_dir`).
    pub folder: String,
    /// One order for each certificate.
    pub orders: Vec<OrderSettings>,
}

/// A certificate that a configuration asks for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OrderSettings {
    /// A digest of all its settings.
    pub key: String,
    /// The hosts in the certificate.
    pub hosts: Vec<String>,
    /// The address of the authority.
    pub directory: String,
    /// The host of the authority, for log lines and `/status`.
    pub authority: String,
}

/// A kind of work that a spawner does.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Task {
    /// Check the files, and write the state that they have to store.
    Look,
    /// Order a certificate, or write one that could not be written before.
    Order,
    /// Ask the authority when the certificate should be renewed.
    Ask,
}

impl Task {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Task::Look => "look",
            Task::Order => "order",
            Task::Ask => "ask",
        }
    }
}

/// The details of a task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Wish {
    /// The known state of the files: facts come only if the state differs.
    pub token: Option<String>,
    /// The failure to write to its file.
    pub fail: Option<Failure>,
    /// True if the file of the failure has to be deleted.
    pub forget: bool,
    /// True if the text has to be written when the file of the certificate is missing or damaged.
    pub restore: bool,
    /// True if the text could not be written when it was issued, and has to be written now.
    pub held: bool,
    /// True if the authority wants the certificate to be replaced.
    pub recalled: bool,
}

/// Texts of a certificate that the supervisor stores.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Text {
    /// The text of the certificate in use.
    Used,
    /// The text of a new certificate that could not be written.
    Held,
}

/// The result of a task.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Answer {
    /// The reason why nothing can be stored in the folder.
    pub unusable: Option<String>,
    /// The state of the files, if it differs from the known state.
    pub facts: Option<Facts>,
    /// The reason why the failure could not be written.
    pub unwritten: Option<String>,
    /// The result of [`Wish::restore`].
    pub restore: Option<Restored>,
    /// The result of an order.
    pub outcome: Option<Outcome>,
    /// The window for the renewal, and the time of the next question; see `Suggestion::take`.
    pub window: Option<[f64; 3]>,
    /// True if the text that came with the result is [`Text::Held`].
    pub held: bool,
}

/// The state of the files of an order.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Facts {
    /// Distinguishes this state from other states.
    pub token: String,
    /// The certificate, if the file is usable.
    pub certificate: Option<Certificate>,
    /// The stored failure.
    pub failure: Option<Failure>,
    /// True if the folder can be read and has no file of a failure.
    pub forgiven: bool,
    /// True if there is an account with the authority.
    pub account: bool,
}

/// A certificate that was issued.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Certificate {
    /// The start of its validity.
    pub begins_at: Wall,
    /// The end of its validity.
    pub expires_at: Wall,
    /// The time of its renewal.
    pub renew_at: Wall,
    /// A number from 0 to 1 that spreads renewals of different certificates.
    pub fraction: f64,
    /// The authority's name for it; nothing if it has none.
    pub identifier: Option<String>,
}

/// The result of rewriting a file.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// The file is written.
    Written,
    /// The file was usable again.
    Found,
    /// Another process orders the certificate.
    Locked,
    /// The file cannot be written, for this reason.
    Failed(String),
}

/// The result of an order.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is a certificate.
    Issued,
    /// Another process orders the certificate.
    Busy,
    /// There is no certificate.
    Failed {
        /// The reason.
        message: String,
        /// The pause in seconds that the authority asks for.
        retry_after: Option<f64>,
    },
}
