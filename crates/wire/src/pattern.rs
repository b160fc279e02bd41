//! Patterns of names (globs, subjects): a pattern is always compared with the whole name, byte by byte.
//!
//! A glob is parsed once. Matching backtracks to the last `*` only, because a retry of an earlier one could not help.
//! So the time is bounded by the product of the lengths.

/// The kind of a text: a name, or a pattern of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Match {
    /// One name.
    Exact,
    /// A glob, as in Redis and iodine: `?` matches any byte, `*` any number of bytes, `[a-z]` one byte of the class,
    /// `[^x]` any other byte, `\` takes the next byte literally.
    Glob,
    /// Tokens separated by `.`, as in NATS and agoo: `*` matches any one token, `>` matches one or more tokens at the
    /// end.
    Subject,
}

/// A pattern that may match more than one name.
#[derive(Debug, PartialEq, Eq)]
pub enum Pattern {
    /// See [`Match::Glob`].
    Glob(Box<[Element]>),
    /// See [`Match::Subject`].
    Subject(Box<[u8]>),
}

/// A part of a glob.
#[derive(Debug, PartialEq, Eq)]
pub enum Element {
    /// This byte.
    Byte(u8),
    /// Any byte.
    One,
    /// Any bytes, or none.
    Run,
    /// A bit for each byte.
    Class(Box<[u64; 4]>),
}

impl Pattern {
    /// `None` if the text is just a name.
    pub fn new(text: &[u8], kind: Match) -> Option<Pattern> {
        match kind {
            Match::Glob if text.iter().any(|byte| br"?*[\".contains(byte)) => Some(Pattern::Glob(read(text))),
            Match::Subject if tokens(text).any(is_wild) => Some(Pattern::Subject(text.into())),
            _ => None,
        }
    }

    /// Returns true if the whole of `name` matches.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Pattern::Glob(elements) => matches_glob(elements, name),
            Pattern::Subject(text) => matches_subject(text, name),
        }
    }
}

/// The bytes at the start of every name that a pattern matches.
pub fn literal_prefix(text: &[u8], kind: Match) -> &[u8] {
    let end = match kind {
        Match::Exact => None,
        Match::Glob => text.iter().position(|byte| br"?*[\".contains(byte)),
        Match::Subject => wildcard(text),
    };
    end.map_or(text, |end| &text[..end])
}

/// The position of the first token of a subject that is a wildcard.
fn wildcard(subject: &[u8]) -> Option<usize> {
    let mut start = 0;
    for token in tokens(subject) {
        if is_wild(token) {
            return Some(start);
        }
        start += token.len() + 1;
    }
    None
}

fn is_wild(token: &[u8]) -> bool {
    matches!(token, b"*" | b">")
}

/// Returns true if the whole of `name` matches a glob.
pub fn glob_matches(glob: &[u8], name: &[u8]) -> bool {
    Pattern::new(glob, Match::Glob).map_or(glob == name, |pattern| pattern.matches(name))
}

impl Element {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Element::Byte(own) => *own == byte,
            Element::One => true,
            Element::Run => false,
            Element::Class(set) => set[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1,
        }
    }
}

fn matches_glob(elements: &[Element], name: &[u8]) -> bool {
    let (mut element, mut byte) = (0, 0);
    // Position to continue from if the last run has to take one more byte.
    let mut retry = None;
    loop {
        match (elements.get(element), name.get(byte)) {
            (None, None) => return true,
            (Some(Element::Run), _) => {
                element += 1;
                retry = Some((element, byte));
            }
            (Some(own), Some(&next)) if own.takes(next) => (element, byte) = (element + 1, byte + 1),
            (_, None) => return false,
            (_, Some(_)) => {
                let Some((after_run, start)) = retry else { return false };
                (element, byte) = (after_run, start + 1);
                retry = Some((element, byte));
            }
        }
    }
}

fn matches_subject(pattern: &[u8], name: &[u8]) -> bool {
    let mut names = tokens(name);
    for token in tokens(pattern) {
        let found = match (token, names.next()) {
            (b">", Some(first)) => return !first.is_empty() || names.next().is_some(),
            (b"*", Some(other)) => !other.is_empty(),
            (token, other) => other == Some(token),
        };
        if !found {
            return false;
        }
    }
    names.next().is_none()
}

fn tokens(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'.')
}

fn read(text: &[u8]) -> Box<[Element]> {
    let mut elements = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let element = match byte {
            b'?' => Element::One,
            b'*' => Element::Run,
            b'[' => Element::Class(Box::new(read_class(&mut rest))),
            _ => Element::Byte(unescape(byte, &mut rest)),
        };
        if element != Element::Run || elements.last() != Some(&Element::Run) {
            elements.push(element);
        }
    }
    elements.into()
}

/// Reads the class after `[`, up to the first `]` or to the end, as Redis does: `[]` matches nothing, the end of a
/// range may be any byte, and `\` counts only outside of a range.
fn read_class(rest: &mut &[u8]) -> [u64; 4] {
    let mut set = [0u64; 4];
    let inverted = rest.first() == Some(&b'^');
    if inverted {
        *rest = &rest[1..];
    }
    while let Some(byte) = next(rest) {
        let (from, to) = match (byte, *rest) {
            (b'\\', [escaped, after @ ..]) => {
                *rest = after;
                (*escaped, *escaped)
            }
            (b']', _) => break,
            (_, [b'-', end, after @ ..]) => {
                *rest = after;
                (byte, *end)
            }
            _ => (byte, byte),
        };
        for byte in from.min(to)..=from.max(to) {
            set[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
    }
    if inverted {
        set = set.map(|bits| !bits);
    }
    set
}

/// The byte itself, or the next one after `\`, if there is one.
fn unescape(byte: u8, rest: &mut &[u8]) -> u8 {
    if byte == b'\\' {
        next(rest).unwrap_or(byte)
    } else {
        byte
    }
}

fn next(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, after) = rest.split_first()?;
    *rest = after;
    Some(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(kind: Match, text: &str, name: &str) -> bool {
        match Pattern::new(text.as_bytes(), kind) {
            Some(pattern) => pattern.matches(name.as_bytes()),
            None => text == name,
        }
    }

    fn check(kind: Match, table: &[(&str, &[&str], &[&str])]) {
        for (text, yes, no) in table {
            for name in *yes {
                assert!(matches(kind, text, name), "{text:?} matches {name:?}");
            }
            for name in *no {
                assert!(!matches(kind, text, name), "{text:?} does not match {name:?}");
            }
        }
    }

    #[test]
    fn globs() {
        check(
            Match::Glob,
            &[
                ("", &[""], &["a"]),
                ("news", &["news"], &["new", "newss", "News"]),
                ("*", &["", "a", "a.b/c"], &[]),
                ("news.*", &["news.", "news.art", "news.a.b"], &["news", "xnews.a"]),
                ("*.art", &[".art", "news.art", ".art.art"], &["news.arts"]),
                ("a*b*c", &["abc", "aXbYc", "abcbc"], &["ab", "abcd", "acb"]),
                ("**a**", &["a", "bab"], &["", "b"]),
                ("h?llo", &["hello", "h.llo"], &["hllo", "heello"]),
                ("??", &["ab"], &["a", "abc"]),
                ("h[ae]llo", &["hello", "hallo"], &["hillo", "hllo", "haello"]),
                ("h[^e]llo", &["hallo"], &["hello", "hllo"]),
                ("h[a-c]llo", &["hallo", "hbllo", "hcllo"], &["hdllo", "h-llo"]),
                ("h[c-a]llo", &["hbllo"], &["hdllo"]),
                // As in Redis 7.0.15.
                ("[a-]", &["a", "]", "^"], &["b", "-"]),
                ("h[]]x", &[], &["h]x", "hx"]),
                ("[]x]", &[], &["]", "x", "x]"]),
                ("[^]x]", &["ax]"], &["]", "x"]),
                (r"[\]\-^]", &["]", "-", "^"], &["\\", "a"]),
                (r"[\a-z]", &["a", "-", "z"], &["b", "\\"]),
                (r"[a-\]z]", &["]z]", "az]"], &["z"]),
                ("[^", &["a"], &["", "ab"]),
                ("[ab", &["a", "b"], &["c", "[ab"]),
                ("[", &[], &["[", ""]),
                (r"h\*llo", &["h*llo"], &["hello", r"h\*llo"]),
                (r"a\", &[r"a\"], &["a"]),
                (r"\\", &[r"\"], &[r"\\"]),
                ("[a-c]*[0-9]", &["a1", "bxx7"], &["d1", "a"]),
            ],
        );
    }

    #[test]
    fn subjects() {
        check(
            Match::Subject,
            &[
                ("a.b", &["a.b"], &["a", "a.b.c", "a.c"]),
                ("a.*", &["a.b"], &["a", "a.", "a.b.c", "b.b"]),
                ("*.b", &["a.b"], &[".b", "b", "a.b.b"]),
                ("a.*.c", &["a.b.c"], &["a.c", "a.b.b.c", "a..c"]),
                ("*", &["a"], &["", "a.b"]),
                (">", &["a", "a.b", "a.b.c"], &[""]),
                ("a.>", &["a.b", "a.b.c"], &["a", "a.", "b.a"]),
                ("a.*.>", &["a.b.c", "a.b.c.d"], &["a.b", "a.b."]),
                ("a.b*", &["a.b*"], &["a.bc"]),
                ("a.>b", &["a.>b"], &["a.b"]),
            ],
        );
    }

    #[test]
    fn a_class_may_hold_any_byte() {
        let pattern = Pattern::new(b"[\x00-\xff]", Match::Glob).expect("a pattern");
        assert!((0..=255).all(|byte| pattern.matches(&[byte])));
        let inverted = Pattern::new(b"[^\x01-\xff]", Match::Glob).expect("a pattern");
        assert!(inverted.matches(b"\0") && !inverted.matches(b"\xff"));
    }

    #[test]
    fn a_pattern_matches_only_names_that_begin_with_its_prefix() {
        for (text, prefix) in [
            ("news.*", "news."),
            ("*", ""),
            (r"a\*b", "a"),
            ("a[bc]", "a"),
            ("a?", "a"),
            ("abc", "abc"),
        ] {
            assert_eq!(
                literal_prefix(text.as_bytes(), Match::Glob),
                prefix.as_bytes(),
                "{text}"
            );
        }
        for (text, prefix) in [
            ("a.*.c", "a."),
            ("a.b.>", "a.b."),
            (">", ""),
            ("*.a", ""),
            ("a*.>b", "a*.>b"),
            ("a.b", "a.b"),
        ] {
            assert_eq!(
                literal_prefix(text.as_bytes(), Match::Subject),
                prefix.as_bytes(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_text_without_wildcards_is_a_name() {
        assert_eq!(Pattern::new(b"a.b", Match::Subject), None);
        assert_eq!(Pattern::new(b"a.b", Match::Glob), None);
        assert_eq!(Pattern::new(b"a*", Match::Exact), None);
    }

    #[test]
    fn many_runs_do_not_take_exponential_time() {
        let text = "*a".repeat(2000) + "*b";
        let name = "a".repeat(8000);
        let begun = std::time::Instant::now();
        assert!(!matches(Match::Glob, &text, &name));
        assert!(matches(Match::Glob, &text, &(name + "b")));
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }
}
