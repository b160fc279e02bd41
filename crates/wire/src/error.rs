//! [`Error`]: one variant for each protocol violation of a peer, with the status of the response.
//!
//! So log lines are precise, and a test is one `assert_eq!`. After any error the connection must be closed with the
//! response: once framing is in doubt, no later byte can be trusted (RFC 9112 §11.2).

use std::fmt;

macro_rules! errors {
    ($($(#[$doc:meta])* $variant:ident = $status:literal, $name:literal;)+) => {
        /// A protocol violation of a peer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Error {
            $($(#[$doc])* $variant,)+
        }

        impl Error {
            /// All variants, for tables and tests.
            pub const ALL: &'static [Error] = &[$(Error::$variant),+];

            /// The status code of the response.
            pub fn status(self) -> u16 {
                match self { $(Error::$variant => $status,)+ }
            }

            /// A description, for a log line.
            pub fn name(self) -> &'static str {
                match self { $(Error::$variant => $name,)+ }
            }
        }
    };
}

errors! {
    /// The connection does not begin with the required line of the PROXY protocol (version 1).
    InvalidProxyLine = 400, "invalid PROXY line";
    /// The connection does not begin with a PROXY header of a permitted version, or the header is malformed.
    InvalidProxyHeader = 400, "invalid PROXY header";
    /// The PROXY header is longer than the limit.
    ProxyHeaderTooLong = 400, "PROXY header too long";
    /// The checksum in the PROXY header is wrong.
    ProxyChecksumMismatch = 400, "wrong checksum of the PROXY header";

    /// LF without CR. RFC 9112 §2.2 lets a recipient accept it, but then peers disagree about where lines end.
    BareLineFeed = 400, "bare line feed";
    /// CR that is not followed by LF (RFC 9112 §2.2).
    BareCarriageReturn = 400, "bare carriage return";
    /// A NUL byte in the head (RFC 9110 §5.5).
    NulByte = 400, "NUL byte";
    /// Any other control character in the head (RFC 9110 §5.5).
    ControlCharacter = 400, "control character";
    /// More than one empty line before the request line. RFC 9112 §2.2 asks servers to ignore at least one.
    RepeatedEmptyLine = 400, "repeated empty line before the request";

    /// The method is empty or contains a byte that is no token character (RFC 9110 §9.1).
    InvalidMethod = 400, "invalid method";
    /// A method that only a proxy can serve: CONNECT (RFC 9110 §9.3.6).
    UnsupportedMethod = 501, "unsupported method";
    /// A method that is longer than any known one (RFC 9112 §3).
    MethodTooLong = 501, "method too long";
    /// The request target has no form of RFC 9112 §3.2, or a form that its method may not use.
    InvalidTarget = 400, "invalid request target";
    /// The request target has a fragment, which is never sent (RFC 9110 §4.2.5).
    FragmentInTarget = 400, "fragment in request target";
    /// The request target is longer than the limit.
    TargetTooLong = 414, "request target too long";
    /// The version is missing, misspelt, or HTTP/0.x (RFC 9112 §2.3).
    InvalidVersion = 400, "invalid HTTP version";
    /// A well-formed version that is not HTTP/1.x.
    UnsupportedVersion = 505, "unsupported HTTP version";

    /// White space between the request line and the first field (RFC 9112 §2.2).
    SpaceBeforeFirstField = 400, "space before the first field";
    /// A field value that continues on the next line (RFC 9112 §5.2).
    ObsoleteFold = 400, "obsolete line folding";
    /// White space between a field name and its colon (RFC 9112 §5.1).
    SpaceBeforeColon = 400, "space before colon";
    /// A field name that is empty, has no colon after it, or contains a byte that is no token character (RFC 9110
    /// §5.1).
    InvalidFieldName = 400, "invalid field name";
    /// The head is longer than the limit.
    HeadTooLarge = 431, "head too large";
    /// The head has more fields than the limit.
    TooManyFields = 431, "too many fields";

    /// `:protocol` is no token (RFC 8441 §4).
    InvalidProtocol = 400, "invalid :protocol";
    /// A `:protocol` other than `websocket` (RFC 9220 §3).
    UnsupportedProtocol = 501, "unsupported :protocol";
    /// A `:scheme` other than `http` and `https` (RFC 9113 §8.3.1).
    UnsupportedScheme = 400, "unsupported :scheme";
    /// No `:path`, in a request other than CONNECT (RFC 9113 §8.3.1).
    MissingPath = 400, "missing :path";
    /// Content-Length with `:protocol`: a tunnel has no content (RFC 9110 §9.3.6).
    ContentLengthOfTunnel = 400, "content length with :protocol";
    /// CR, LF or NUL in a field value of HTTP/2 (RFC 9113 §8.2.1).
    LineBreakInValue = 400, "line break or NUL in a field value";
    /// White space at the start or the end of a field value of HTTP/2 (RFC 9113 §8.2.1).
    SpaceAroundValue = 400, "white space around a field value";
    /// `:authority` and Host name different hosts (RFC 9113 §8.3.1).
    HostContradictsAuthority = 400, "Host contradicts :authority";
    /// An HTTP/1.1 request without Host (RFC 9112 §3.2).
    MissingHost = 400, "missing host";
    /// More than one Host field (RFC 9112 §3.2).
    DuplicateHost = 400, "repeated host";
    /// A Host that is not `uri-host [ ":" port ]`, or is empty (RFC 9110 §7.2).
    InvalidHost = 400, "invalid host";

    /// Forwarded, from a trusted proxy, breaks the grammar of RFC 7239 §4.
    InvalidForwarded = 400, "invalid forwarded field";
    /// Trusted proxies report different clients, schemes or hosts in Forwarded and in the X-Forwarded-* fields: one of
    /// these fields comes from the client.
    ContradictoryForwarded = 400, "contradictory forwarded fields";

    /// Content-Length is not a decimal number, or is larger than any body can be (RFC 9110 §8.6).
    InvalidContentLength = 400, "invalid content length";
    /// More than one Content-Length field, even if they agree.
    DuplicateContentLength = 400, "repeated content length";
    /// Content-Length and Transfer-Encoding in one request (RFC 9112 §6.1).
    ContentLengthWithTransferEncoding = 400, "content length with transfer encoding";
    /// Transfer-Encoding in HTTP/1.0 (RFC 9112 §6.1: faulty framing).
    TransferEncodingInHttp10 = 400, "transfer encoding in HTTP/1.0";
    /// More than one Transfer-Encoding field, or `chunked` more than once (RFC 9112 §6.1).
    DuplicateTransferEncoding = 400, "repeated transfer encoding";
    /// Transfer-Encoding is not a list of codings that ends with a plain `chunked` (RFC 9112 §6.3).
    InvalidTransferEncoding = 400, "invalid transfer encoding";
    /// A well-formed transfer coding other than `chunked` (RFC 9112 §6.1).
    UnsupportedTransferCoding = 501, "unsupported transfer coding";
    /// `Content_Length` or `Transfer_Encoding`: their CGI names are equal to the names of the real fields.
    FramingLookalike = 400, "framing field spelt with underscore";
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    UnsupportedExpectation = 417, "unsupported expectation";

    /// The chunk size contains a character that is no hexadecimal digit (RFC 9112 §7.1).
    InvalidChunkSize = 400, "invalid chunk size";
    /// The chunk size has too many digits or is larger than any body can be.
    ChunkSizeOverflow = 400, "chunk size overflow";
    /// A chunk extension that is not `;name[=value]` (RFC 9112 §7.1.1).
    InvalidChunkExtension = 400, "invalid chunk extension";
    /// Chunk extensions of one chunk, or of the whole body, exceed the limit.
    ChunkExtensionTooLong = 400, "chunk extension too long";
    /// The data of a chunk is not followed by CRLF (RFC 9112 §7.1).
    MissingChunkTerminator = 400, "missing chunk terminator";
    /// A trailer line that is not a field line (RFC 9112 §7.1.2).
    InvalidTrailer = 400, "invalid trailer";
    /// The trailer section is longer than the limit.
    TrailerTooLarge = 431, "trailer too large";
    /// A trailer field that is only allowed in the head, because it frames or routes (RFC 9110 §6.5.1).
    ForbiddenTrailer = 400, "forbidden trailer field";
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn every_error_has_a_client_or_server_status_and_its_own_name() {
        let mut names: Vec<_> = Error::ALL.iter().map(|error| error.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Error::ALL.len());
        for error in Error::ALL {
            assert!([400, 414, 417, 431, 501, 505].contains(&error.status()), "{error:?}");
            assert_eq!(error.to_string(), error.name());
        }
    }
}
