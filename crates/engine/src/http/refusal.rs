//! The reasons for which the server refuses a request itself, without the app.

use fairlead_wire::Error;
use std::io::ErrorKind;

/// See the head of this file: a violation by the peer, or a resource that is exhausted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The peer has violated the protocol, or a limit that the protocol lets a server set.
    Malformed(Error),
    /// The peer uses TLS on a listener without TLS.
    Tls,
    MethodNotSupported,
    HeadTooSlow,
    BodyTooSlow,
    BodyTooLarge,
    NoMemoryForHead,
    NoDescriptorForBody,
    NoDiskForBody,
    /// The body could not be written to the temporary folder.
    BodyNotStored(StoreFault),
    /// The temporary file of the body cannot be read.
    BodyNotReadable,
    /// The request has waited for a thread for `queue_timeout`.
    QueueTimeout,
    /// The request has waited for long while every other request did, too (`queue_target`).
    Overload,
    /// `queue_limit` is reached.
    QueueFull,
    /// The request ran in another worker, which has ended without a response.
    WorkerLost,
}

/// The reason why a body could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreFault {
    NoRoom,
    NoFolder,
    NotAllowed,
    Other,
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
    /// The status of the response (RFC 9110 §15, RFC 4918 §11.5).
    pub(crate) fn status(self) -> u16 {
        match self {
            Refusal::Malformed(error) => error.status(),
            Refusal::Tls => 400,
            Refusal::HeadTooSlow | Refusal::BodyTooSlow => 408,
            Refusal::BodyTooLarge => 413,
            Refusal::BodyNotReadable => 500,
            Refusal::MethodNotSupported => 501,
            Refusal::WorkerLost => 502,
            Refusal::NoMemoryForHead
            | Refusal::NoDescriptorForBody
            | Refusal::NoDiskForBody
            | Refusal::QueueTimeout
            | Refusal::Overload
            | Refusal::QueueFull => 503,
            Refusal::BodyNotStored(_) => 507,
        }
    }

    /// The reason, for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Refusal::Malformed(error) => error.name(),
            Refusal::Tls => "TLS on a listener without TLS",
            Refusal::MethodNotSupported => "method not supported",
            Refusal::HeadTooSlow => "head took too long",
            Refusal::BodyTooSlow => "body arrived too slowly",
            Refusal::BodyTooLarge => "body too large",
            Refusal::NoMemoryForHead => "no memory for such a large head",
            Refusal::NoDescriptorForBody => "no descriptor for the body's file",
            Refusal::NoDiskForBody => "request bodies have reached their disk limit",
            Refusal::BodyNotStored(StoreFault::NoRoom) => "no room for the body in the temporary folder",
            Refusal::BodyNotStored(StoreFault::NoFolder) => {
                "there is no temporary folder for the body: create temp_dir, or change it"
            }
            Refusal::BodyNotStored(StoreFault::NotAllowed) => {
                "the server may not write to the temporary folder: change the permissions of temp_dir, or change it"
            }
            Refusal::BodyNotStored(StoreFault::Other) => {
                "the body could not be written to the temporary folder: a disk error, or too few descriptors"
            }
            Refusal::BodyNotReadable => "the body's temporary file cannot be read",
            Refusal::QueueTimeout => "no thread was free within queue_timeout",
            Refusal::Overload => "overloaded: all requests wait longer than queue_target",
            Refusal::QueueFull => "queue_limit is reached",
            Refusal::WorkerLost => "the response of another worker ended before it began",
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Malformed(error)
    }
}
