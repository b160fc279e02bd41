//! Maps the error of a stream to a result for its request.

use crate::failure::Failure;
use h2::{Error, Reason};

/// Result for the request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cost {
    /// The server has not processed it, without blaming us (RFC 9113 §6.8): it is sent again.
    Nothing,
    /// It has failed; with the server's error code, if the server reset the stream.
    Request(Failure, Option<String>),
}

impl Cost {
    pub(super) fn of(error: &Error) -> Cost {
        let reason = error.reason().unwrap_or(Reason::NO_ERROR);
        if error.is_io() {
            Cost::Request(Failure::Closed, None)
        } else if !error.is_remote() {
            // h2 has found a violation of the protocol in the response.
            Cost::Request(Failure::Malformed, None)
        } else if error.is_go_away() {
            match reason {
                Reason::NO_ERROR => Cost::Nothing,
                _ => Cost::Request(Failure::GoAway, None),
            }
        } else {
            let why = match reason {
                Reason::REFUSED_STREAM => Failure::Refused,
                _ => Failure::Reset,
            };
            Cost::Request(why, Some(code(reason)))
        }
    }
}

/// The name of an error code in RFC 9113 §7, or the number of an unknown one.
pub(super) fn code(reason: Reason) -> String {
    let number = u32::from(reason);
    if number <= u32::from(Reason::HTTP_1_1_REQUIRED) {
        format!("{reason:?}")
    } else {
        format!("0x{number:x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_rfc() {
        assert_eq!(code(Reason::REFUSED_STREAM), "REFUSED_STREAM");
        assert_eq!(code(Reason::ENHANCE_YOUR_CALM), "ENHANCE_YOUR_CALM");
        assert_eq!(code(Reason::from(0xbeef)), "0xbeef");
    }

    #[test]
    fn what_we_find_ourselves_is_no_reset_of_the_server() {
        let error = Error::from(Reason::PROTOCOL_ERROR);
        assert_eq!(Cost::of(&error), Cost::Request(Failure::Malformed, None));
    }
}
