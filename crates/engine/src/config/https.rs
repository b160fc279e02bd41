//! Settings for requests without TLS, and for browsers that should not send them.

use std::str::FromStr;

/// Scheme by which a client reached the server, or the proxy in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// Redirection of a request without TLS to the same target with TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpsRedirect {
    /// No redirection: the request is served.
    #[default]
    Never,
    /// To the port of the first listener with TLS; without one, to the usual port.
    ToListener,
    /// To this port.
    ToPort(u16),
}

impl FromStr for HttpsRedirect {
    type Err = ();

    /// Parses `false`, `true` or a port.
    fn from_str(text: &str) -> Result<HttpsRedirect, ()> {
        match text {
            "false" => Ok(HttpsRedirect::Never),
            "true" => Ok(HttpsRedirect::ToListener),
            port => match port.parse() {
                Ok(0) | Err(_) => Err(()),
                Ok(port) => Ok(HttpsRedirect::ToPort(port)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HttpsRedirect;

    #[test]
    fn a_redirect_is_read_from_its_word() {
        for (text, expected) in [
            ("false", Ok(HttpsRedirect::Never)),
            ("true", Ok(HttpsRedirect::ToListener)),
            ("443", Ok(HttpsRedirect::ToPort(443))),
            ("0", Err(())),
            ("65536", Err(())),
            ("https", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
    }
}
