//! [`PathFault`]: one variant for each reason to refuse a path by its text.

use std::fmt;

macro_rules! faults {
    ($($(#[$doc:meta])* $variant:ident = $reason:literal;)+) => {
        /// The reason to refuse a path by its text alone.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PathFault {
            $($(#[$doc])* $variant,)+
        }

        impl PathFault {
            /// All variants, for tables and tests.
            pub const ALL: &'static [PathFault] = &[$(PathFault::$variant),+];

            /// A description, for a log line.
            pub fn reason(self) -> &'static str {
                match self { $(PathFault::$variant => $reason,)+ }
            }
        }
    };
}

faults! {
    /// The path does not begin with a slash: `*`, an empty path, or another form of target.
    NoLeadingSlash = "no leading slash";
    /// `#`, not encoded: it ends a path (RFC 3986 §3.3), and clients never send it.
    Fragment = "fragment in path";
    /// `%` that is not followed by two hexadecimal digits (RFC 3986 §2.1), including `%u002e`.
    InvalidEscape = "invalid percent-encoding";
    /// `%2f`: a slash if decoded before splitting, part of a name if decoded afterwards.
    EncodedSlash = "encoded slash";
    /// More bytes than any kernel accepts for a path.
    PathTooLong = "path too long";
    /// More bytes than a file system accepts for a name.
    NameTooLong = "name too long";

    /// A NUL byte, which ends the path for the kernel.
    NulByte = "NUL byte in path";
    /// Another control character: of ASCII, or U+0080 to U+009F.
    ControlCharacter = "control character in path";
    /// A backslash, which separates on Windows.
    Backslash = "backslash in path";
    /// A colon: drives and alternate data streams on Windows, a slash in another representation on macOS.
    Colon = "colon in path";
    /// One of `<>"|?*`, which are not allowed in names on Windows.
    ReservedCharacter = "reserved character in path";
    /// The path is not UTF-8: overlong forms, surrogates, other encodings.
    InvalidUtf8 = "path not in UTF-8";
    /// A character that some file system treats as a dot or a slash, or ignores; or a character that changes the
    /// display of the path.
    DeceptiveCharacter = "deceptive character in path";

    /// Nothing between two slashes, or before the first one.
    EmptyName = "empty name in path";
    /// The name `.`.
    CurrentFolder = "single dot as name in path";
    /// A name that begins with two dots: `..` itself, `...`, which some systems treat like it, `..namedfork` on macOS.
    ParentFolder = "name beginning with two dots in path";
    /// A name that ends with a dot or a space, which Windows removes.
    TrailingDotOrSpace = "trailing dot or space in path";
    /// A name in the form of the short aliases that FAT and NTFS give to long names: `CONFIG~1.YML`.
    ShortName = "short name in path";
    /// The name of a DOS device, with any extension.
    DeviceName = "device name in path";
    /// A name that begins with a dot or ends with `~`, unless such names are allowed.
    HiddenName = "hidden name in path";
}

impl fmt::Display for PathFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.reason())
    }
}

impl std::error::Error for PathFault {}

#[cfg(test)]
mod tests {
    use super::PathFault;

    #[test]
    fn every_fault_has_its_own_reason() {
        let mut reasons: Vec<_> = PathFault::ALL.iter().map(|fault| fault.to_string()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        assert_eq!(reasons.len(), PathFault::ALL.len());
    }
}
