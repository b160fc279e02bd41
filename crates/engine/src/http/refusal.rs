//! The reasons for which the server refuses a request or a connection itself, without the app.

use fairlead_wire::Error;
use std::io::ErrorKind;

/// Declares the reasons, one in a row: its name, the status of the response (RFC 9110 §15, RFC 4918 §11.5), its label in
/// the metrics, and its text in the log.
macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident: $status:literal, $label:literal, $text:literal;)*) => {
        /// See the head of this file: a violation by the peer, or a resource that is exhausted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Refusal {
            /// The peer has violated the protocol, or a limit that the protocol lets a server set.
            Malformed(Error),
            /// The body could not be written to the temporary folder.
            BodyNotStored(StoreFault),
            $($(#[$doc])* $name,)*
        }

        impl Refusal {
            /// The labels of all reasons.
            pub(crate) const LABELS: &'static [&'static str] = &["malformed", "body_not_stored", $($label,)*];

            /// The status of the response.
            pub(crate) fn status(self) -> u16 {
                match self {
                    Refusal::Malformed(error) => error.status(),
                    Refusal::BodyNotStored(_) => 507,
                    $(Refusal::$name => $status,)*
                }
            }

            /// The name of the reason in the metrics: one of [`Refusal::LABELS`].
            pub(crate) fn label(self) -> &'static str {
                match self {
                    Refusal::Malformed(_) => "malformed",
                    Refusal::BodyNotStored(_) => "body_not_stored",
                    $(Refusal::$name => $label,)*
                }
            }

            /// The reason, for the log.
            pub(crate) fn reason(self) -> &'static str {
                match self {
                    Refusal::Malformed(error) => error.name(),
                    Refusal::BodyNotStored(fault) => fault.reason(),
                    $(Refusal::$name => $text,)*
                }
            }
        }
    };
}

refusals! {
    /// The peer uses TLS on a listener without TLS.
    Tls: 400, "tls", "TLS on a listener without TLS";
    HeadTooSlow: 408, "head_too_slow", "head took too long";
    BodyTooSlow: 408, "body_too_slow", "body arrived too slowly";
    BodyTooLarge: 413, "body_too_large", "body too large";
    /// The temporary file of the body cannot be read.
    BodyNotReadable: 500, "body_not_readable", "the body's temporary file cannot be read";
    MethodNotSupported: 501, "method_not_supported", "method not supported";
    /// The request ran in another worker, which has ended without a response.
    WorkerLost: 502, "worker_lost", "the response of another worker ended before it began";
    /// The request has waited for a thread for `queue_timeout`.
    QueueTimeout: 503, "queue_timeout", "no thread was free within queue_timeout";
    /// The request has waited for long while every other request did, too (`queue_target`).
    Overload: 503, "overload", "overloaded: all requests wait longer than queue_target";
    /// The server is paused, and the request has waited for `pause_timeout`.
    Paused: 503, "paused", "the server is paused";
    /// `queue_limit` is reached.
    QueueFull: 503, "queue_full", "queue_limit is reached";
    NoMemoryForHead: 503, "no_memory", "no memory for such a large head";
    NoDescriptorForBody: 503, "no_descriptor_for_body", "no descriptor for the body's file";
    NoDiskForBody: 503, "no_disk", "request bodies have reached their disk limit";
    /// The app has not responded within `request_timeout`.
    RequestTimeout: 504, "request_timeout", "the application has not responded within request_timeout";
    /// A new connection, before its request.
    TooManyConnections: 503, "max_connections", "max_connections are open";
    /// A new connection, before its request.
    NoDescriptor: 503, "no_descriptor", "out of file descriptors: the rest is reserved for the application";
    /// A request in the waiting room that no worker can serve.
    NotTaken: 503, "not_taken", "a request from the waiting room cannot be served";
}

/// The reason why a body could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    NoRoom,
    NoFolder,
    NotAllowed,
    Other,
}

impl StoreFault {
    fn reason(self) -> &'static str {
        match self {
            StoreFault::NoRoom => "no room for the body in the temporary folder",
            StoreFault::NoFolder => "there is no temporary folder for the body: create temp_dir, or change it",
            StoreFault::NotAllowed => {
                "the server may not write to the temporary folder: change the permissions of temp_dir, or change it"
            }
            StoreFault::Other => {
                "the body could not be written to the temporary folder: a disk error, or too few descriptors"
            }
        }
    }
}

impl From<ErrorKind> for StoreFault {
    fn from(kind: ErrorKind) -> StoreFault {
        match kind {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => StoreFault::NoRoom,
            ErrorKind::NotFound | ErrorKind::NotADirectory => StoreFault::NoFolder,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => StoreFault::NotAllowed,
            _ => StoreFault::Other,
        }
    }
}

impl Refusal {
    /// Seconds after which a client may try again, if that is not the usual time.
    pub(crate) fn retry_after(self) -> Option<&'static [u8]> {
        (self == Refusal::Paused).then_some(b"10")
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Malformed(error)
    }
}
