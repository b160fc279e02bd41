//! Settings of one engine: limits, timeouts and logs. Every value comes from the option table of `lib/`; no default is
//! written here. A field has the name of its option and is read by it, so a new option needs only a field.

pub(crate) mod fair_by;
pub(crate) mod https;
pub(crate) mod log_format;
pub(crate) mod log_sample;
pub(crate) mod peers;

use crate::limits::descriptors::Descriptors;
use crate::limits::meter::Rate;
use crate::limits::request_totals::RequestTotals;
use fairlead_wire::http1::HeadLimits;
use fairlead_wire::websocket::Context;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use fair_by::FairBy;
pub use https::{HttpsRedirect, Scheme};
pub use log_format::Format;
pub use log_sample::LogSample;
pub use peers::{ForwardedFields, RemoteAddress, ServerTiming, TrustedProxies};

/// Source of the values of options: one implementation for each type of a field.
pub trait Setting<T> {
    /// Reason for a missing value.
    type Error;

    /// Returns the value of the option.
    ///
    /// # Errors
    /// If there is none, or it has another type.
    fn setting(&self, option: &'static str) -> Result<T, Self::Error>;
}

/// Declares a struct with settings as fields.
macro_rules! settings {
    (
        $(#[$about:meta])*
        pub struct $struct:ident {
            $($(#[$doc:meta])* pub $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$about])*
        pub struct $struct {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $struct {
            /// Reads each field by its name.
            ///
            /// # Errors
            /// The first one, if a value is missing or has another type.
            pub fn read<S, E>(settings: &S) -> Result<$struct, E>
            where
                $(S: Setting<$type, Error = E>,)*
            {
                Ok($struct {
                    $($field: Setting::<$type>::setting(settings, stringify!($field))?,)*
                })
            }
        }
    };
}

settings! {
    /// Limits and timeouts of one worker. Zero means "no limit" only where a field says so. The fields have the names
    /// of options, except fields with types that combine several options.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Threads that are started first.
        pub min_threads: usize,
        /// Most threads at a time.
        pub max_threads: usize,
        /// Time for which a thread may keep the lock of the language while others want it; 0: as long as the language
        /// allows.
        pub time_slice: Duration,
        /// Time for a whole TLS handshake.
        pub handshake_timeout: Duration,
        /// Most TLS handshakes at a time; when it is reached, one of them is dropped.
        pub max_handshakes: usize,
        /// True if HTTP/2 is supported: a client begins with its preface, or negotiates it by ALPN.
        pub http2: bool,
        /// True if a WebSocket may be a stream of HTTP/2 (RFC 8441).
        pub http2_websockets: bool,
        /// Most requests of an HTTP/2 connection at a time.
        pub http2_streams: u32,
        /// Time for a whole request head, counted from its first byte.
        pub head_timeout: Duration,
        /// Longest request head in bytes (431).
        pub head_max_bytes: usize,
        /// Most header fields of a request (431).
        pub head_max_fields: usize,
        /// Longest request target in bytes (414).
        pub target_max_bytes: usize,
        /// Longest time without progress of a body, or below `body_min_rate` (408).
        pub body_timeout: Duration,
        /// Minimum rate of a body, in bytes per second; 0 for no minimum.
        pub body_min_rate: u64,
        /// Largest body in bytes (413); 0 for no limit.
        pub body_max_bytes: u64,
        /// Bodies above this many bytes go to an unlinked temporary file.
        pub body_memory_bytes: usize,
        /// Folder for temporary files.
        pub temp_dir: PathBuf,
        /// Supported methods (501); all if the list is empty.
        pub supported_http_methods: Vec<String>,
        /// Source of a client's address.
        pub remote_address: RemoteAddress,
        /// Peers that may name their clients.
        pub trusted_proxies: TrustedProxies,
        /// Header fields in which they name them.
        pub forwarded_fields: ForwardedFields,
        /// True if the app is told the time at which a request was complete.
        pub request_start: bool,
        /// Clients that are told the times of their requests.
        pub server_timing: ServerTiming,
        /// Scheme of every request, whatever its connection uses.
        pub rack_url_scheme: Option<Scheme>,
        /// Redirection of requests without TLS to the same target with TLS.
        pub redirect_to_https: HttpsRedirect,
        /// Value of Strict-Transport-Security (RFC 6797) in responses to requests with TLS; `None` for no such field.
        pub hsts: Option<String>,
        /// True if a connection may carry more than one request.
        pub enable_keep_alives: bool,
        /// Most requests of a connection; 0 for no limit.
        pub max_keep_alive: u64,
        /// Longest idle time of a connection between requests.
        pub keep_alive_timeout: Duration,
        /// Longest time without progress of an unsent response, or below `write_min_rate`.
        pub write_timeout: Duration,
        /// Minimum rate at which a client must take a response, in bytes per second; 0 for no minimum.
        pub write_min_rate: u64,
        /// Unsent bytes of a response above this go to an unlinked temporary file.
        pub response_memory_bytes: usize,
        /// Unsent bytes of a response above this make the app wait.
        pub response_disk_bytes: u64,
        /// Most unsent bytes of all responses in memory; above it writers wait in a queue.
        pub response_memory_total_bytes: u64,
        /// Most unsent bytes of all responses on disk.
        pub response_disk_total_bytes: u64,
        /// Most connections at a time (503).
        pub max_connections: usize,
        /// Budget of descriptors; shared by all engines of a process.
        pub descriptors: Arc<Descriptors>,
        /// Memory and disk space that all requests together may use.
        pub request_totals: Arc<RequestTotals>,
        /// Returns freed memory to the system.
        pub trim_memory: fn(),
        /// Bytes of the process that are in memory; 0 if the system does not tell.
        pub resident_memory: fn() -> u64,
        /// Key by which the ready queue is fair.
        pub fair_by: FairBy,
        /// Paths of requests that go ahead of the others.
        pub priority_paths: Vec<String>,
        /// Time within which the app has to begin its response (504); 0 for no limit.
        pub request_timeout: Duration,
        /// The same for paths; `*` at the end stands for any rest. The first match counts.
        pub request_timeout_for: Vec<(String, Duration)>,
        /// Time after its 504 from which on a request that still runs counts as stuck; 0 for never.
        pub stuck_after: Duration,
        /// Longest wait of a request for a thread (503); 0 for no limit.
        pub queue_timeout: Duration,
        /// Most requests and messages that wait for a thread (503); 0 for no limit.
        pub queue_limit: usize,
        /// Wait that every request of a [`Config::queue_interval`] exceeds if the server is overloaded (503); 0 for none.
        pub queue_target: Duration,
        /// Interval in which a burst must have found a free thread.
        pub queue_interval: Duration,
        /// Paths of requests that the access log leaves out if they succeed; `*` at the end stands for any rest.
        pub access_log_skip: Vec<String>,
        /// Requests that the access log has, by status.
        pub access_log_sample: LogSample,
        /// Paths of requests that the metrics of requests leave out, in the same form.
        pub metrics_skip: Vec<String>,
        /// Time after which a request is logged as slow; 0 for none.
        pub slow_request: Duration,
        /// True if waiting requests may migrate to another worker.
        pub waiting_room: bool,
        /// Folder with the responses to challenges of certificate authorities; see `acme.rs`.
        pub acme_challenges: Option<PathBuf>,
        /// True if the app may send 103 responses.
        pub early_hints: bool,
        /// Longest message of a client in bytes (1009).
        pub message_max_bytes: usize,
        /// A client with more unsent bytes than this gets no more; a client with more unprocessed bytes of messages is
        /// not read.
        pub client_pending_bytes: usize,
        /// Action for a client with too many unsent bytes.
        pub client_overflow: Overflow,
        /// Most bytes of messages of all clients that may wait for the app; above it no client is read.
        pub messages_pending_bytes: usize,
        /// Most published messages that may wait for the blocks of a client; more make it overflow.
        pub client_pending_messages: usize,
        /// Most subscriptions of a client; 0 for no limit.
        pub max_subscriptions: usize,
        /// Most subscriptions of all clients of the process; 0 for no limit.
        pub max_subscriptions_total: usize,
        /// Most different patterns among these subscriptions; 0 for no limit.
        pub max_patterns: usize,
        /// Most messages of a channel that a client gets from the history.
        pub history_messages: usize,
        /// Time for which a message of the history is delivered.
        pub history_time: Duration,
        /// Seconds of silence after which a client gets a ping (or a comment); 0 for never.
        pub ping_interval: u32,
        /// Most control frames of a client in a second (1008); 0 for no limit.
        pub max_pings: u32,
        /// Number of the code that this worker has loaded: clients migrate to the same or a later generation.
        pub generation: u64,
        /// Clients of another worker that the app resumes in a second; 0 for no limit.
        pub resume_rate: u32,
        /// Time over which a worker that retires closes the clients that cannot migrate.
        pub drain_spread: Duration,
        /// Compression of messages, if any.
        pub deflate: Option<Context>,
        /// Shorter messages are not compressed.
        pub deflate_min_bytes: usize,
        /// Files to serve.
        pub files: FilesConfig,
        /// Compression of responses of the app, if any.
        pub compression: Option<Compression>,
    }
}

impl Config {
    /// Minimum rate of a request body.
    pub(crate) fn body_rate(&self) -> Rate {
        Rate {
            grace: self.body_timeout,
            bytes: self.body_min_rate,
        }
    }

    /// Minimum rate at which a client takes a response.
    pub(crate) fn write_rate(&self) -> Rate {
        Rate {
            grace: self.write_timeout,
            bytes: self.write_min_rate,
        }
    }

    /// True if a connection that has carried `served` requests persists after the next one.
    pub(crate) fn persists_after(&self, served: u64) -> bool {
        self.enable_keep_alives && (self.max_keep_alive == 0 || served + 1 < self.max_keep_alive)
    }

    /// Time within which the app has to respond to a request for `path`; `None` for no limit.
    pub(crate) fn timeout_of(&self, path: &[u8]) -> Option<Duration> {
        let mut rules = self.request_timeout_for.iter();
        let rule = rules.find(|(pattern, _)| is_path_of(pattern, path));
        let timeout = rule.map_or(self.request_timeout, |(_, timeout)| *timeout);
        (!timeout.is_zero()).then_some(timeout)
    }

    /// True if the access log leaves out successful requests for `path`.
    pub(crate) fn skips_in_log(&self, path: &[u8]) -> bool {
        self.access_log_skip.iter().any(|pattern| is_path_of(pattern, path))
    }

    /// True if the metrics of requests leave out requests for `path`.
    pub(crate) fn skips_in_metrics(&self, path: &[u8]) -> bool {
        self.metrics_skip.iter().any(|pattern| is_path_of(pattern, path))
    }

    /// True if requests with this method are served.
    pub(crate) fn supports(&self, method: &[u8]) -> bool {
        let mut methods = self.supported_http_methods.iter();
        self.supported_http_methods.is_empty() || methods.any(|supported| supported.as_bytes() == method)
    }

    /// Limits of the parser of request heads.
    pub(crate) fn head_limits(&self) -> HeadLimits {
        HeadLimits {
            head_bytes: self.head_max_bytes,
            fields: self.head_max_fields,
            target_bytes: self.target_max_bytes,
        }
    }
}

/// True if `path` is the path of a rule, or begins with it if the rule ends with `*`.
fn is_path_of(rule: &str, path: &[u8]) -> bool {
    match rule.as_bytes().strip_suffix(b"*") {
        Some(beginning) => path.starts_with(beginning),
        None => path == rule.as_bytes(),
    }
}

settings! {
    /// Files to serve.
    #[derive(Clone, Debug, Default)]
    pub struct FilesConfig {
        /// Folder with files that are served before the app is called.
        pub public_dir: Option<PathBuf>,
        /// True if its hidden files are served.
        pub public_hidden: bool,
        /// Symbolic links in it that are followed.
        pub public_symlinks: Symlinks,
        /// Patterns of paths, and the Cache-Control of paths that match; the first match counts.
        pub public_cache_control: Vec<(String, String)>,
        /// Folders with files that the app may send: absolute paths, each with the prefix of the internal paths for it,
        /// if there is one.
        pub sendfile_root: Vec<(Option<String>, PathBuf)>,
        /// Error pages: statuses, and the absolute path of the file for them. They precede pages in `public_dir`.
        pub error_page: Vec<(Vec<u16>, PathBuf)>,
        /// Most bytes of small files that are kept in memory; 0 for none.
        pub file_cache_bytes: u64,
    }
}

/// Symbolic links that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Links with targets inside the folder.
    #[default]
    Inside,
    /// None.
    None,
    /// All, whatever their targets.
    All,
}

settings! {
    /// Responses to compress.
    #[derive(Clone, Debug)]
    pub struct Compression {
        /// Shorter responses are not compressed.
        pub compress_min_bytes: u64,
        /// Media types such as `text/*`; empty for the default ones.
        pub compress_types: Vec<String>,
    }
}

/// Action for a client that does not take its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// Closes it (1013).
    Close,
    /// Drops further data for it.
    Drop,
}

/// Destination of the log lines; a native thread writes them. The descriptors are borrowed, so that their owner can
/// replace the file behind a number.
#[derive(Debug, Default)]
pub struct Logs {
    /// One line for each response.
    pub access: Option<(BorrowedFd<'static>, Format)>,
    /// One line for each refusal and for each error of the server itself.
    pub errors: Option<BorrowedFd<'static>>,
    /// Text before each error line, such as `[1234] `.
    pub prefix: String,
}
