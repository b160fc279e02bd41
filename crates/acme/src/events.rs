//! Messages to the server, and its responses.

use crate::problem::Problem;
use serde::Serialize;
use std::io::Write;
use tokio::sync::mpsc::UnboundedReceiver;

/// A line of standard output.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    /// The account to store. `key`: as PKCS #8 in DER, if it is new.
    Account { url: String, key: Option<Vec<u8>> },
    /// The responses to the challenges, to be put in place.
    Answers { answers: Vec<Answer> },
    /// The certificate and its chain, in PEM.
    Issued { chain: String },
    /// The window for the renewal, and the seconds until the next question. Times are seconds since 1970.
    Renewal { start: i64, end: i64, again: u64 },
    /// There is no certificate.
    Failed {
        r#type: String,
        message: String,
        retry_after: Option<u64>,
    },
}

/// The response to one challenge.
#[derive(Serialize)]
pub(crate) struct Answer {
    pub(crate) host: String,
    pub(crate) token: String,
    pub(crate) authorization: String,
}

impl Event {
    /// Writes the line. Ignores an error, because the server is then gone.
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
    /// Lines from the thread that reads them.
    pub(crate) fn new(lines: UnboundedReceiver<String>) -> Events {
        Events(lines)
    }

    /// The next line.
    pub(crate) async fn next(&mut self) -> Result<String, Problem> {
        let line = self.0.recv().await;
        line.ok_or_else(|| Problem::new("process", "the server has ended".to_owned()))
    }
}
