//! The log lines of the supervisor.
//!
//! Writing never waits: lines go to a bounded queue for each stream, and a thread of that stream writes them.

mod form;
mod queue;
mod timestamp;
mod writer;

use crate::settings::LogSettings;
use form::Form;
use rustix::stdio::{stderr, stdout};
use std::fmt;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use writer::Writer;

pub use timestamp::rfc3339;

/// The severity of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Details, written only on request.
    Debug,
    /// Normal operation.
    Info,
    /// A problem.
    Warn,
    /// A failure.
    Error,
}

/// Takes lines instead of the streams, for a logger or a formatter in Ruby; must not wait. Returns false if it cannot
/// take the line now; the line then goes to standard error.
pub type Sink = Box<dyn FnMut(Level, &'static str, &str) -> bool + Send>;

/// The log. Each clone writes to the same streams.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    form: Arc<Mutex<Form>>,
    sink: Mutex<Option<Sink>>,
    output: Writer,
    errors: Writer,
}

impl Level {
    /// The name in lines of JSON, and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        }
    }
}

impl Log {
    /// The log on standard output and standard error.
    pub fn new(settings: &LogSettings) -> Log {
        Log::to(settings, stdout(), stderr())
    }

    /// The log on other streams.
    pub fn to<F: AsFd + Send + Sync + 'static>(settings: &LogSettings, output: F, errors: F) -> Log {
        let form = Arc::new(Mutex::new(Form::new(settings)));
        Log(Arc::new(Shared {
            output: Writer::new(output, Arc::clone(&form)),
            errors: Writer::new(errors, Arc::clone(&form)),
            sink: Mutex::new(None),
            form,
        }))
    }

    /// Uses another configuration from now on.
    pub fn adopt(&self, settings: &LogSettings) {
        *self.form() = Form::new(settings);
    }

    /// Takes lines of a log that Ruby formats or writes (`by_ruby`). A line that the sink itself logs goes to standard
    /// error.
    pub fn pass_to(&self, sink: Sink) {
        *self.0.sink.lock().unwrap_or_else(PoisonError::into_inner) = Some(sink);
    }

    /// Writes a message of the level debug.
    pub fn debug(&self, event: &'static str, text: impl AsRef<str>) {
        self.write(Level::Debug, event, text.as_ref());
    }

    /// Writes a message of the level info.
    pub fn info(&self, event: &'static str, text: impl AsRef<str>) {
        self.write(Level::Info, event, text.as_ref());
    }

    /// Writes a warning.
    pub fn warn(&self, event: &'static str, text: impl AsRef<str>) {
        self.write(Level::Warn, event, text.as_ref());
    }

    /// Writes an error.
    pub fn error(&self, event: &'static str, text: impl AsRef<str>) {
        self.write(Level::Error, event, text.as_ref());
    }

    /// Writes a message, if the configuration wants this level. `event`: its name in lines of JSON.
    pub fn write(&self, level: Level, event: &'static str, text: &str) {
        let form = *self.form();
        if !form.wants(level) {
            return;
        }
        if form.is_ruby && self.pass(level, event, text) {
            return;
        }
        let line = form.line(level, event, text);
        match level {
            Level::Debug | Level::Info if !form.is_ruby => self.0.output.add(line),
            _ => self.0.errors.add(line),
        }
    }

    /// Waits until every line is written, but no longer than `limit`. Returns false if lines are left.
    pub fn flush(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        [&self.0.errors, &self.0.output].map(|writer| writer.flush(deadline)) == [true, true]
    }

    fn pass(&self, level: Level, event: &'static str, text: &str) -> bool {
        let Ok(mut sink) = self.0.sink.try_lock() else {
            return false;
        };
        sink.as_mut().is_some_and(|sink| sink(level, event, text))
    }

    fn form(&self) -> MutexGuard<'_, Form> {
        self.0.form.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Log").field(&*self.form()).finish()
    }
}

#[cfg(test)]
mod tests;
