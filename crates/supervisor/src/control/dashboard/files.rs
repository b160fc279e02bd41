//! The files of the page. They contain nothing secret, so they need no token; the page asks for it and sends it as a header.

use super::super::response::Response;

/// Nothing but these files and the control server itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The response with a file of the page; `None` for any other path.
pub(in super::super) fn file(path: &[u8]) -> Option<Response> {
    let (kind, text) = match path {
        b"/" => ("text/html; charset=utf-8", include_str!("dashboard.html")),
        b"/dashboard.css" => ("text/css; charset=utf-8", include_str!("dashboard.css")),
        b"/dashboard.js" => ("text/javascript; charset=utf-8", include_str!("dashboard.js")),
        _ => return None,
    };
    let response = Response::typed(kind, text);
    Some(
        response
            .with_field("content-security-policy", POLICY)
            .with_field("x-frame-options", "DENY")
            .with_field("referrer-policy", "no-referrer")
            .with_field("cross-origin-opener-policy", "same-origin")
            .with_field("cross-origin-resource-policy", "same-origin"),
    )
}
