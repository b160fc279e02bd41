//! The settings of one engine: limits, time-outs and logs. Every value comes from the option table of `lib/`; no
//! default is written here. A field has the name of its option and is read by it, so a new option needs only a field.

pub(crate) mod fair_by;
pub(crate) mod https;
pub(crate) mod log_format;
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
pub use peers::{ForwardedFields, RemoteAddress, TrustedProxies};

/// Where the values of options come from: one implementation for each type that a field has.
pub trait Setting<T> {
    /// Why there is no value.
    type Error;

    /// The value of the option.
    ///
    /// # Errors
    /// If there is none, or it is of another type.
    fn setting(&self, option: &'static str) -> Result<T, Self::Error>;
}

/// A struct whose fields are settings.
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
            /// The first one, if a value is missing or of another type.
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
    /// Limits and time-outs of one worker. Zero means "no limit" only where a field says so. The fields have the names
    /// of options, except those whose types combine several options.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Threads that are started at first.
        pub min_threads: usize,
        /// Most threads at a time.
        pub max_threads: usize,
        /// How long a thread may keep the lock of the language while others want it; 0: as long as the language lets
        /// it.
        pub time_slice: Duration,
        /// Time for a whole TLS handshake.
        pub handshake_timeout: Duration,
        /// Most TLS handshakes at a time; above it, the one that has taken longest is given up.
        pub max_handshakes: usize,
        /// Whether HTTP/2 is spoken: if a client begins with its preface, or agrees on it by ALPN.
        pub http2: bool,
        /// Whether a WebSocket may be a stream of HTTP/2 (RFC 8441).
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
        /// How long a body may make no progress, or stay below `body_min_rate` (408).
        pub body_timeout: Duration,
        /// Bytes a second that must arrive of a body; 0 for no minimum.
        pub body_min_rate: u64,
        /// Largest body in bytes (413); 0 for no limit.
        pub body_max_bytes: u64,
        /// Bodies above this many bytes go to an unlinked temporary file.
        pub body_memory_bytes: usize,
        /// Where temporary files are made.
        pub temp_dir: PathBuf,
        /// Methods that are served (501); all if there are none.
        pub supported_http_methods: Vec<String>,
        /// Where the address of a client comes from.
        pub remote_address: RemoteAddress,
        /// Who is believed in what it says of its clients.
        pub trusted_proxies: TrustedProxies,
        /// In which fields they say it.
        pub forwarded_fields: ForwardedFields,
        /// The scheme of every request, whatever its connection says.
        pub rack_url_scheme: Option<Scheme>,
        /// Whether a request without TLS is sent to the same place with it.
        pub redirect_to_https: HttpsRedirect,
        /// The value of Strict-Transport-Security (RFC 6797) in responses to requests with TLS; none without it.
        pub hsts: Option<String>,
        /// Whether a connection may carry more than one request.
        pub enable_keep_alives: bool,
        /// Most requests of a connection; 0 for no limit.
        pub max_keep_alive: u64,
        /// How long a connection may be idle between requests.
        pub keep_alive_timeout: Duration,
        /// How long an unsent response may make no progress, or stay below `write_min_rate`.
        pub write_timeout: Duration,
        /// Bytes a second that a client must take; 0 for no minimum.
        pub write_min_rate: u64,
        /// Unsent bytes of a response above this go to an unlinked temporary file.
        pub response_memory_bytes: usize,
        /// Unsent bytes of a response above this make the app wait.
        pub response_disk_bytes: u64,
        /// Unsent bytes of all responses that may be in memory; above it writers wait in line.
        pub response_memory_total_bytes: u64,
        /// Unsent bytes of all responses that may be on disk.
        pub response_disk_total_bytes: u64,
        /// Most connections at a time (503).
        pub max_connections: usize,
        /// The budget of descriptors; shared by all engines of a process.
        pub descriptors: Arc<Descriptors>,
        /// The memory and disk space that all requests together may use.
        pub request_totals: Arc<RequestTotals>,
        /// Returns freed memory to the system.
        pub trim_memory: fn(),
        /// Who takes turns in the ready queue.
        pub fair_by: FairBy,
        /// Paths of requests that go ahead of the others.
        pub priority_paths: Vec<String>,
        /// Whether waiting requests may move to another worker.
        pub waiting_room: bool,
        /// Where the answers to challenges of certificate authorities appear; see `acme.rs`.
        pub acme_challenges: Option<PathBuf>,
        /// Whether the app may send 103 responses.
        pub early_hints: bool,
        /// Longest message of a client in bytes (1009).
        pub message_max_bytes: usize,
        /// A client with more unsent bytes than this gets no more; one with more unprocessed bytes of messages is not
        /// read.
        pub client_pending_bytes: usize,
        /// What happens to a client with too many unsent bytes.
        pub client_overflow: Overflow,
        /// Bytes of messages of all clients that may wait for the app; above it no client is read.
        pub messages_pending_bytes: usize,
        /// Published messages that may wait for the blocks of a client; more make it overflow.
        pub client_pending_messages: usize,
        /// Subscriptions of a client, of all clients of the process, and different patterns among these; 0 for no limit.
        pub max_subscriptions: usize,
        /// See there.
        pub max_subscriptions_total: usize,
        /// See there.
        pub max_patterns: usize,
        /// Seconds of silence after which a client gets a ping (or a comment); 0 for never.
        pub ping_interval: u32,
        /// Control frames that a client may send in a second (1008); 0 for no limit.
        pub max_pings: u32,
        /// Whether and how messages are compressed.
        pub deflate: Option<Context>,
        /// Shorter messages are not compressed.
        pub deflate_min_bytes: usize,
        /// Which files are served.
        pub files: FilesConfig,
        /// Whether and which responses of the app are compressed.
        pub compression: Option<Compression>,
    }
}

impl Config {
    /// The minimum rate of a request body.
    pub(crate) fn body_rate(&self) -> Rate {
        Rate {
            grace: self.body_timeout,
            bytes: self.body_min_rate,
        }
    }

    /// The minimum rate at which a client takes what it is sent.
    pub(crate) fn write_rate(&self) -> Rate {
        Rate {
            grace: self.write_timeout,
            bytes: self.write_min_rate,
        }
    }

    /// Whether a connection that has carried `served` requests persists after the next one.
    pub(crate) fn persists_after(&self, served: u64) -> bool {
        self.enable_keep_alives && (self.max_keep_alive == 0 || served + 1 < self.max_keep_alive)
    }

    /// Whether requests with this method are served.
    pub(crate) fn supports(&self, method: &[u8]) -> bool {
        let mut methods = self.supported_http_methods.iter();
        self.supported_http_methods.is_empty() || methods.any(|supported| supported.as_bytes() == method)
    }

    /// The limits of the parser of request heads.
    pub(crate) fn head_limits(&self) -> HeadLimits {
        HeadLimits {
            head_bytes: self.head_max_bytes,
            fields: self.head_max_fields,
            target_bytes: self.target_max_bytes,
        }
    }
}

settings! {
    /// Which files are served.
    #[derive(Clone, Debug, Default)]
    pub struct FilesConfig {
        /// The folder whose files are served before the app is called.
        pub public_dir: Option<PathBuf>,
        /// Whether its hidden files are served.
        pub public_hidden: bool,
        /// Which symbolic links in it are followed.
        pub public_symlinks: Symlinks,
        /// Patterns of paths, and the Cache-Control of paths that match; the first match counts.
        pub public_cache_control: Vec<(String, String)>,
        /// Folders from which the app may have files sent: absolute paths, each with the prefix of the internal paths
        /// that stand for it, if there is one.
        pub sendfile_root: Vec<(Option<String>, PathBuf)>,
        /// Most bytes of small files that are kept in memory; 0 for none.
        pub file_cache_bytes: u64,
    }
}

/// Which symbolic links are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that stay beneath the folder.
    #[default]
    Inside,
    /// None.
    None,
    /// All, wherever they point.
    All,
}

settings! {
    /// Which responses are compressed.
    #[derive(Clone, Debug)]
    pub struct Compression {
        /// Shorter responses are not compressed.
        pub compress_min_bytes: u64,
        /// Media types such as `text/*`; empty for the default ones.
        pub compress_types: Vec<String>,
    }
}

/// What happens to a client that does not take what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// It is closed (1013).
    Close,
    /// What is written to it is dropped.
    Drop,
}

/// Where the log lines go; a native thread writes them. The descriptors are borrowed, so that their owner can put
/// another file behind the same number.
#[derive(Debug, Default)]
pub struct Logs {
    /// One line for each response.
    pub access: Option<(BorrowedFd<'static>, Format)>,
    /// One line for each refusal and for each fault of the server itself.
    pub errors: Option<BorrowedFd<'static>>,
    /// Put before each error line, such as `[1234] `.
    pub prefix: String,
}
