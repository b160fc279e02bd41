//! Messages to the server, and its answers.

use crate::problem::Problem;
use serde::Serialize;
use std::io::Write;
use tokio::sync::mpsc::UnboundedReceiver;

/// A line of standard output.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// The account to keep. `key`: as PKCS #8 in DER, if it is new.
    Account { url: String, key: Option<Vec<u8>> },
    /// The answers to put in place for the challenges.
    Answers { answers: Vec<Answer> },
    /// The certificate and those above it, in PEM.
    Issued { chain: String },
    /// When a certificate is to be renewed, and in how many seconds to ask again. Times are seconds since 1970.
    Renewal { start: i64, end: i64, again: u64 },
    /// There is no certificate.
    Failed {
        r#type: String,
        message: String,
        retry_after: Option<u64>,
    },
}

/// The answer to one challenge.
#[derive(Serialize)]
pub(crate) struct Answer {
    pub(crate) host: String,
    pub(crate) token: String,
    pub(crate) authorization: String,
}

impl Event {
    /// Writes the line. If nobody reads it, nobody wants to know.
    pub(crate) fn tell(&self) {
        let mut output = std::io::stdout().lock();
        let written = serde_json::to_writer(&mut output, self).map_err(std::io::Error::from);
        if written
            .and_then(|()| output.write_all(b"\n"))
            .and_then(|()| output.flush())
            .is_err()
        {
            std::process::exit(1);
        }
    }
}

/// The lines of standard input.
pub(crate) struct Events(UnboundedReceiver<String>);

impl Events {
    /// Lines that a thread reads.
    pub(crate) fn new(lines: UnboundedReceiver<String>) -> Events {
        Events(lines)
    }

    /// The next line.
    pub(crate) async fn next(&mut self) -> Result<String, Problem> {
        let line = self.0.recv().await;
        line.ok_or_else(|| Problem::new("process", "the server has ended".to_owned()))
    }
}
