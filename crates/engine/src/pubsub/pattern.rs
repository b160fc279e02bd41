//! How the text of a subscription is compared with the name of a channel.

/// What the text of a subscription is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// The name of one channel.
    Exact,
    /// A glob: `?`, `*`, `[a-z]`, `[^x]`, `\`.
    Glob,
    /// Tokens with `.` between them: `*` is any one token, `>` one or more to the end.
    Subject,
}
