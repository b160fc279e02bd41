//! Settings about requests that have come without TLS, and about browsers that should not send them.

use std::str::FromStr;

/// How a client reached the server, or the proxy in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

/// Whether a request without TLS is sent to the same place with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpsRedirect {
    /// No: it is served.
    #[default]
    Never,
    /// To the port of the first listener with TLS; without one, to the usual port.
    ToListener,
    /// To this port.
    ToPort(u16),
}

impl FromStr for HttpsRedirect {
    type Err = ();

    /// `false`, `true` or a port.
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
