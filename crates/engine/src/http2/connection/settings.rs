//! The settings of an HTTP/2 connection (RFC 9113 §6.5.2): its limit of streams (`http2_streams`), its windows, the size of
//! a head, and the limits of `h2` itself.

use crate::config::Config;
use h2::server::Builder;

/// Bytes that a client may send of one body, and of all bodies of a connection, before the server takes them. They
/// bound the memory that a connection needs, beside the bytes that were taken.
const STREAM_WINDOW: u32 = 128 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Most bytes of a response that `h2` keeps.
const STREAM_BUFFER: usize = 64 * 1024;

/// Bytes that `h2` may need in addition to the bytes of small DATA frames: for the frames of a turn, which
/// [`Http2Connection::gather`](super::Http2Connection::gather) takes out of it, and for frames that are read ahead while nothing can be sent.
const DATA_FRAME_BUDGET: usize = 4 << 20;

/// Most requests that are reset before they are accepted: the requests of a burst, which `Flood::Resets` bounds.
const PENDING_RESETS: usize = 200;

/// A server connection of `h2` with these settings.
pub(super) fn builder(config: &Config) -> Builder {
    let mut builder = Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(config.http2_streams)
        .max_header_list_size(u32::try_from(config.head_max_bytes).unwrap_or(u32::MAX))
        .data_frame_budget(DATA_FRAME_BUDGET)
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_send_buffer_size(STREAM_BUFFER);
    if config.http2_websockets {
        builder.enable_connect_protocol();
    }
    builder
}
