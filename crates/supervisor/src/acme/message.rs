//! The messages about certificates between the supervisor and the current spawner. `lib/fairlead/acme/clerk.rb` is the other side.

use super::failure::Failure;
use super::Wall;
use serde::{Deserialize, Serialize};

/// The certificates that a configuration asks for.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Orders {
    /// The folder of the state (`acme_dir`).
    pub folder: String,
    /// Each certificate.
    pub orders: Vec<OrderSettings>,
}

/// A certificate that a configuration asks for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct OrderSettings {
    /// A digest of all its settings.
    pub key: String,
    /// The hosts in it.
    pub hosts: Vec<String>,
    /// The address of the authority.
    pub directory: String,
    /// The host of the authority, for people.
    pub authority: String,
}

/// The work that a spawner is asked for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Task {
    /// Look at the files, and keep what has to be kept in them.
    Look,
    /// Order a certificate, or write one that could not be written.
    Order,
    /// Ask the authority when it wants the certificate to be renewed.
    Ask,
}

impl Task {
    /// Its word in messages.
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
    /// The state of the files that is known: facts come only if there is another one.
    pub token: Option<String>,
    /// The failure to write to its file.
    pub fail: Option<Failure>,
    /// Whether the file of the failure is to be deleted.
    pub forget: bool,
    /// Whether the text is to be written if the file of the certificate is missing or damaged.
    pub restore: bool,
    /// Whether the text could not be written when it was issued, and is to be written now.
    pub held: bool,
    /// Whether the authority wants the certificate to be replaced.
    pub recalled: bool,
}

/// Texts of a certificate that the supervisor keeps.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Text {
    /// That of the certificate in use.
    Used,
    /// A new one that could not be written.
    Held,
}

/// The answer to a task.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Answer {
    /// Why nothing can be kept in the folder.
    pub unusable: Option<String>,
    /// The state of the files, if it is another one than the known one.
    pub facts: Option<Facts>,
    /// Why the failure could not be written.
    pub unwritten: Option<String>,
    /// What has become of [`Wish::restore`].
    pub restore: Option<Restored>,
    /// What has become of an order.
    pub outcome: Option<Outcome>,
    /// The window for the renewal, and when to ask again; see `Suggestion::take`.
    pub window: Option<[f64; 3]>,
    /// Whether the text that came with the answer is [`Text::Held`].
    pub held: bool,
}

/// The state of the files of an order.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Facts {
    /// Tells this state from others.
    pub token: String,
    /// The certificate, if the file is usable.
    pub certificate: Option<Certificate>,
    /// The failure that was kept.
    pub failure: Option<Failure>,
    /// Whether there is no file of a failure, in a folder that can be read.
    pub forgiven: bool,
    /// Whether there is an account with the authority.
    pub account: bool,
}

/// A certificate that was issued.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Certificate {
    /// The beginning of its life.
    pub begins_at: Wall,
    /// The end of its life.
    pub expires_at: Wall,
    /// The time of its renewal.
    pub renew_at: Wall,
    /// A number from 0 to 1 that spreads renewals of different certificates.
    pub fraction: f64,
    /// Its name for the authority; nothing if it names none.
    pub identifier: Option<String>,
}

/// What has become of a file that was to be written again.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// It is there.
    Written,
    /// It was usable again.
    Found,
    /// Another process orders the certificate.
    Locked,
    /// It cannot be written, for this reason.
    Failed(String),
}

/// What has become of an order.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There is a certificate.
    Issued,
    /// Another process orders it.
    Busy,
    /// There is none.
    Failed {
        /// The reason.
        message: String,
        /// The pause in seconds that the authority asks for.
        retry_after: Option<f64>,
    },
}
