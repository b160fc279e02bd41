//! Texts of the system in messages for users.

use std::io;

/// Text in which bytes that are not UTF-8 are escaped: "caf\xE9".
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        chunk
            .invalid()
            .iter()
            .for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
    }
    text
}

/// The reason of an error, without its number: "Permission denied".
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text.replace(&format!(" (os error {number})"), ""),
        None => text,
    }
}

/// The reason why a resource could not be created; for too few descriptors, also the limit to raise.
pub fn shortage(error: &io::Error) -> String {
    const EMFILE: i32 = 24;
    if error.raw_os_error() != Some(EMFILE) {
        return reason(error);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.map_or_else(|| "unlimited".to_string(), |limit| limit.to_string());
    format!("too few descriptors, \"ulimit -n\" is {limit}: {}", reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_escaped() {
        assert_eq!(shown(b"/srv/caf\xE9/\xC3\xA9"), "/srv/caf\\xE9/\u{e9}");
    }

    #[test]
    fn an_error_is_told_as_the_system_does() {
        assert_eq!(reason(&io::Error::from_raw_os_error(13)), "Permission denied");
        assert_eq!(reason(&io::Error::other("no thread")), "no thread");
    }
}
