//! Converts heads of HTTP/2: between the types of the `http` crate, which `h2` uses, and heads of HTTP/1, which the
//! rest of the engine uses.

use fairlead_wire::http2::{write_head, Priority, RequestHead, ResponseLines};
use fairlead_wire::Error;
use http::header::{HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};

/// The head of a request in HTTP/1.
///
/// # Errors
/// See [`write_head`].
pub(super) fn request_head(request: &Request<()>, out: &mut Vec<u8>) -> Result<(), Error> {
    let uri = request.uri();
    let protocol = request.extensions().get::<h2::ext::Protocol>();
    // `path_and_query` writes "/" for a missing path; the head has to have an empty one.
    let path = match uri.path_and_query() {
        Some(path) if !uri.path().is_empty() => path.as_str().as_bytes(),
        _ => b"",
    };
    let head = RequestHead {
        method: request.method().as_str().as_bytes(),
        // h2 has a scheme only together with an authority.
        scheme: uri.scheme_str().map(str::as_bytes),
        authority: uri.authority().map(|authority| authority.as_str().as_bytes()),
        path,
        protocol: protocol.map(|protocol| protocol.as_str().as_bytes()),
    };
    let fields = || {
        let fields = request.headers().iter();
        fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()))
    };
    write_head(&head, fields, out)
}

/// Returns true for an extended CONNECT (RFC 8441 §4): a tunnel for another protocol. A head is written only for
/// WebSockets.
pub(super) fn is_tunnel(request: &Request<()>) -> bool {
    request.extensions().get::<h2::ext::Protocol>().is_some()
}

/// The priority that the client gives to a request.
pub(super) fn priority(request: &Request<()>) -> Priority {
    let mut values = request.headers().get_all("priority").iter();
    values
        .next_back()
        .map_or(Priority::default(), |value| Priority::of(value.as_bytes()))
}

/// Converts a head in HTTP/1 into an HTTP/2 response. A switch to another protocol (101) becomes success (RFC 8441 §5).
/// If the client wants a tunnel, any other success would claim that there is one, and becomes 501. Returns `None` if
/// `lines` is no head of a response; the engine never writes such a head.
pub(super) fn response(lines: &ResponseLines<'_>, is_for_tunnel: bool) -> Option<Response<()>> {
    let status = match lines.status {
        101 => 200,
        200..300 if is_for_tunnel => 501,
        status => status,
    };
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).ok()?;
    let headers = response.headers_mut();
    for (name, value) in lines.fields() {
        let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) else {
            continue;
        };
        headers.try_append(name, value).ok()?;
    }
    Some(response)
}
