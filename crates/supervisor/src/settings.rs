//! The configuration as plain data. The command writes it for the supervisor, and a spawner of new code for the
//! supervisor that adopts it.

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

/// The version of the messages between supervisor, spawners and workers, including these settings.
pub const PROTOCOL: u32 = 1;

/// The settings of one generation. Descriptors are indexes into the list that is sent with the settings.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Settings {
    /// [`PROTOCOL`] of the code that has written the settings.
    pub protocol: u32,
    /// The version of Fairlead that has written the settings.
    pub version: String,
    /// The layout of shared memory (`SharedMemory::layout`) of the code that has written the settings.
    pub layout: String,
    /// Settings for the machine.
    pub limits: Limits,
    /// The option `tag`, for the titles of processes.
    pub tag: SystemText,
    /// The command that starts the server again.
    pub command: CommandLine,
    /// The listeners for clients.
    pub listeners: Vec<ListenerSettings>,
    /// The control server.
    pub control: Option<ControlSettings>,
    /// The health endpoints.
    pub health: Option<ListenerSettings>,
    /// The publish socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishing: Option<ListenerSettings>,
    /// The absolute path of the pid file.
    pub pid_file: Option<SystemText>,
    /// The state file.
    pub state_file: Option<StateFileSettings>,
    /// The log.
    pub log: LogSettings,
    /// The file that restarts the server when it is touched.
    pub restart_file: Option<SystemText>,
    /// True if a listener uses TLS.
    pub tls: bool,
    /// True if systemd keeps the listeners.
    pub systemd_store: bool,
    /// The log line of a ready server.
    pub ready: String,
    /// Number of requests after which a refork begins; 0 for never.
    pub refork_after: u64,
    /// The limits after which a single worker is replaced.
    #[serde(default)]
    pub recycling: RecyclingSettings,
    /// The times of a pause.
    #[serde(default)]
    pub pausing: PausingSettings,
    /// Seconds without a request after which the server ends; 0 for never.
    pub idle_timeout: f64,
    /// The option max_threads, for statistics.
    pub max_threads: usize,
    /// True if TERM, after everything has ended, ends the process like a signal.
    pub raise_on_term: bool,
    /// The Ruby that runs the application, for statistics.
    pub ruby: RubySettings,
}

/// Settings for the machine.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Hash, Serialize)]
pub struct Limits {
    /// Configured number of workers; 0 for a sole process that loads the application and serves.
    pub workers: usize,
    /// Time limit for a request when the server ends (`shutdown_timeout`).
    #[serde(with = "seconds")]
    pub shutdown_timeout: Duration,
    /// Time limit for a request of a worker that is replaced; `shutdown_timeout` if it is shorter.
    #[serde(default, skip_serializing_if = "Duration::is_zero", with = "seconds")]
    pub long_drain: Duration,
    /// Time for which workers accept after TERM.
    #[serde(with = "seconds")]
    pub drain_delay: Duration,
    /// Longest time without a heartbeat of a worker or a ready spawner.
    #[serde(with = "seconds")]
    pub worker_timeout: Duration,
    /// Time limit for a worker from its fork until it serves.
    #[serde(with = "seconds")]
    pub worker_boot_timeout: Duration,
    /// Time limit for a spawner to load the application.
    #[serde(with = "seconds")]
    pub load_timeout: Duration,
    /// Time that a new worker has to serve until it has settled (`worker_settle_time`).
    #[serde(with = "seconds")]
    pub settle_time: Duration,
    /// Time for the requests and clients of a worker that an automatic refork replaces.
    #[serde(skip, default = "patience")]
    pub patience: Duration,
    /// Time limit for a worker to become a spawner in an automatic refork.
    #[serde(skip, default = "promotion_timeout")]
    pub promotion_timeout: Duration,
}

/// The usual patience.
pub const fn patience() -> Duration {
    Duration::from_secs(24 * 60 * 60)
}

/// The usual time limit of a promotion. A busy worker goes on after it as any worker that is replaced.
pub const fn promotion_timeout() -> Duration {
    Duration::from_secs(10 * 60)
}

/// The times of a pause: of every pause, or of the rest of one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct PausingSettings {
    /// The option pause_timeout: the longest wait of a request.
    #[serde(with = "seconds")]
    pub timeout: Duration,
    /// The option pause_limit: the longest pause.
    #[serde(with = "seconds")]
    pub limit: Duration,
}

/// The limits after which a single worker is replaced; nothing where there is none.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RecyclingSettings {
    /// The option worker_max_memory, in bytes.
    pub max_memory: Option<u64>,
    /// The option worker_max_requests.
    pub max_requests: Option<u64>,
    /// The option worker_max_age, in seconds.
    pub max_age: Option<f64>,
    /// The option worker_max_jitter: the largest part by which a limit is lower for one of the workers.
    pub jitter: f64,
}

/// A path, or another text of the system: any bytes except NUL. In JSON each byte is the character with this number
/// (ISO 8859-1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemText(OsString);

impl SystemText {
    /// The text as a path.
    pub fn path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The text for the standard library.
    pub fn os(&self) -> &OsStr {
        &self.0
    }
}

impl From<OsString> for SystemText {
    fn from(text: OsString) -> SystemText {
        SystemText(text)
    }
}

impl Serialize for SystemText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        serializer.serialize_str(&text)
    }
}

impl<'a> Deserialize<'a> for SystemText {
    fn deserialize<D: serde::Deserializer<'a>>(deserializer: D) -> Result<SystemText, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
        let bytes = bytes.map_err(|_| serde::de::Error::custom("a character is no byte"))?;
        Ok(SystemText(OsString::from_vec(bytes)))
    }
}

/// Seconds as a number, as in the configuration.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

/// The command of the server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct CommandLine {
    /// The program and its arguments.
    pub words: Vec<SystemText>,
    /// The folder to start it in, which may be a symbolic link to a release.
    pub folder: SystemText,
    /// The whole environment.
    pub environment: Vec<(SystemText, SystemText)>,
}

/// An open listener.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ListenerSettings {
    /// Its descriptor; nothing if the supervisor already has the listener of this binding.
    pub descriptor: Option<usize>,
    /// The address for which it was opened, as configured; empty if it is unknown.
    pub binding: SystemText,
    /// The address for log lines: "http://127.0.0.1:9292".
    pub address: String,
    /// The absolute path of the file of a Unix socket of this server.
    pub file: Option<SystemText>,
    /// True if the socket outlives the server, because systemd has it.
    pub kept: bool,
}

/// The control server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ControlSettings {
    /// Its listener.
    pub listener: ListenerSettings,
    /// Its address in the form of the configuration, for programs: "tcp://127.0.0.1:9293", "unix:///run/control.sock".
    pub url: String,
    /// The secret; nothing if there is none.
    pub token: Option<String>,
    /// True if only commands that change nothing are allowed.
    pub data_only: bool,
}

/// The state file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct StateFileSettings {
    /// Its absolute path.
    pub path: SystemText,
    /// Its permissions.
    pub mode: u32,
    /// The server's working folder, for the content of the file.
    pub running_from: SystemText,
}

/// The destination and format of log lines.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LogSettings {
    /// Lines of JSON instead of text.
    pub json: bool,
    /// No messages of the level info.
    pub quiet: bool,
    /// Also messages of the level debug.
    pub debug: bool,
    /// True if lines of text begin with the process id.
    pub prefix: bool,
    /// True if Ruby formats or writes lines: they go to the spawner.
    pub by_ruby: bool,
    /// The file that replaces standard output.
    pub stdout: Option<SystemText>,
    /// The file that replaces standard error.
    pub stderr: Option<SystemText>,
    /// The path of the access log, if it is a file: for the line that reports the reopening of logs.
    pub access: Option<SystemText>,
}

/// The Ruby that runs the application.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct RubySettings {
    /// RUBY_ENGINE.
    pub engine: String,
    /// RUBY_VERSION.
    pub version: String,
    /// RUBY_PATCHLEVEL.
    pub patchlevel: i64,
}
