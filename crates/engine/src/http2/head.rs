//! Heads of HTTP/2 as the types of `http`, which `h2` speaks, and as heads of HTTP/1, which the rest of the engine does.

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
    // A path that is missing is empty here, and "/" there.
    let path = match uri.path_and_query() {
        Some(path) if !uri.path().is_empty() => path.as_str().as_bytes(),
        _ => b"",
    };
    let head = RequestHead {
        method: request.method().as_str().as_bytes(),
        // h2 tells it only together with an authority.
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

/// True for an extended CONNECT (RFC 8441 §4): a tunnel to what speaks another protocol. Only for WebSockets a head is
/// written.
pub(super) fn is_tunnel(request: &Request<()>) -> bool {
    request.extensions().get::<h2::ext::Protocol>().is_some()
}

/// The priority that the client gives a request.
pub(super) fn priority(request: &Request<()>) -> Priority {
    let mut values = request.headers().get_all("priority").iter();
    values
        .next_back()
        .map_or(Priority::default(), |value| Priority::of(value.as_bytes()))
}

/// A head in HTTP/1 as a response of HTTP/2. What switches to another protocol there succeeds here (RFC 8441 §5); to a
/// client that wants a tunnel, other success would say that there is one. `None` if it is no head of a response, which the engine never writes.
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
