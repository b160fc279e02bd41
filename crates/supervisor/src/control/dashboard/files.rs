//! The files of the page. They contain nothing secret, so they need no token; the page asks for it and sends it as a header.

use super::super::response::Response;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// Nothing but these files and the control server itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// The response with a file of the page; `None` for any other path.
pub(in super::super) fn file(path: &[u8]) -> Option<Response> {
    let (kind, text) = match path {
        b"/" => (HTML, include_str!("dashboard.html")),
        b"/dashboard.css" => (CSS, include_str!("dashboard.css")),
        b"/texts.js" => (JAVASCRIPT, include_str!("texts.js")),
        b"/elements.js" => (JAVASCRIPT, include_str!("elements.js")),
        b"/chart.js" => (JAVASCRIPT, include_str!("chart.js")),
        b"/dashboard.js" => (JAVASCRIPT, include_str!("dashboard.js")),
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
