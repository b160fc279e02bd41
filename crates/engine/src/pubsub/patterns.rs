//! The patterns of one kind, found by the bytes before their first wildcard. So a publication is compared only with
//! patterns that have the same beginning as its channel.

use super::channels::Members;
use fairlead_wire::pattern::{literal_prefix, Match, Pattern};
use std::collections::{BTreeMap, HashMap};

/// Bytes of a prefix that count. A lookup takes at most one step more than this.
const LONGEST_PREFIX: usize = 32;

/// Patterns by their text.
type SamePrefix = HashMap<Box<[u8]>, (Pattern, Members)>;

pub(super) struct Patterns {
    kind: Match,
    by_prefix: HashMap<Box<[u8]>, SamePrefix>,
    /// The lengths of the prefixes, with the number of prefixes of each length.
    lengths: BTreeMap<usize, usize>,
    count: usize,
}

impl Patterns {
    pub(super) fn new(kind: Match) -> Patterns {
        Patterns {
            kind,
            by_prefix: HashMap::new(),
            lengths: BTreeMap::new(),
            count: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn prefix<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        let prefix = literal_prefix(text, self.kind);
        prefix.get(..LONGEST_PREFIX).unwrap_or(prefix)
    }

    pub(super) fn get(&self, text: &[u8]) -> Option<&Members> {
        let (_, members) = self.by_prefix.get(self.prefix(text))?.get(text)?;
        Some(members)
    }

    pub(super) fn get_mut(&mut self, text: &[u8]) -> Option<&mut Members> {
        let prefix = self.prefix(text);
        let (_, members) = self.by_prefix.get_mut(prefix)?.get_mut(text)?;
        Some(members)
    }

    /// Returns the subscribers of a pattern, which is added if it is new.
    pub(super) fn add(&mut self, text: &[u8], pattern: Pattern) -> &mut Members {
        let prefix = self.prefix(text);
        if !self.by_prefix.contains_key(prefix) {
            *self.lengths.entry(prefix.len()).or_default() += 1;
        }
        let same = self.by_prefix.entry(prefix.into()).or_default();
        let (_, members) = same.entry(text.into()).or_insert_with(|| {
            self.count += 1;
            (pattern, Members::default())
        });
        members
    }

    pub(super) fn remove(&mut self, text: &[u8]) {
        let prefix = self.prefix(text);
        let Some(same) = self.by_prefix.get_mut(prefix) else {
            return;
        };
        self.count -= usize::from(same.remove(text).is_some());
        if !same.is_empty() {
            return;
        }
        self.by_prefix.remove(prefix);
        if let Some(prefixes) = self.lengths.get_mut(&prefix.len()) {
            *prefixes -= 1;
            if *prefixes == 0 {
                self.lengths.remove(&prefix.len());
            }
        }
    }

    /// Patterns with the same beginning as `channel`.
    fn candidates<'a>(&'a self, channel: &'a [u8]) -> impl Iterator<Item = &'a (Pattern, Members)> {
        let prefixes = self.lengths.range(..=channel.len());
        prefixes
            .filter_map(move |(length, _)| self.by_prefix.get(channel.get(..*length)?))
            .flat_map(HashMap::values)
    }

    /// The subscribers of the patterns that match `channel`.
    pub(super) fn matching<'a>(&'a self, channel: &'a [u8]) -> impl Iterator<Item = &'a Members> {
        let candidates = self.candidates(channel);
        candidates
            .filter(|(pattern, _)| pattern.matches(channel))
            .map(|(_, members)| members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(kind: Match, texts: &[String]) -> Patterns {
        let mut patterns = Patterns::new(kind);
        for text in texts {
            let pattern = Pattern::new(text.as_bytes(), kind).expect("a pattern");
            patterns.add(text.as_bytes(), pattern);
        }
        patterns
    }

    #[test]
    fn only_patterns_that_begin_as_the_channel_does_are_compared() {
        let rooms: Vec<String> = (0..10_000).map(|number| format!("room/{number}/*")).collect();
        let rooms = patterns(Match::Glob, &rooms);
        assert_eq!(rooms.len(), 10_000);
        assert_eq!(rooms.candidates(b"room/4711/door").count(), 1);
        assert_eq!(rooms.candidates(b"other").count(), 0);
        let subjects: Vec<String> = (0..10_000).map(|number| format!("room.{number}.>")).collect();
        assert_eq!(
            patterns(Match::Subject, &subjects)
                .candidates(b"room.4711.door")
                .count(),
            1
        );
    }

    #[test]
    fn all_that_match_are_found() {
        let long = "x".repeat(3 * LONGEST_PREFIX);
        let texts = ["*", "a*", "ab*", "a?c", "abc*", r"a\bc", "[a]bc", "b*"].map(String::from);
        let globs = patterns(Match::Glob, &[&texts[..], &[long.clone() + "*"]].concat());
        assert_eq!(globs.matching(b"abc").count(), 7);
        assert_eq!(globs.matching((long.clone() + "y").as_bytes()).count(), 2);
        assert_eq!(globs.matching(&long.as_bytes()[1..]).count(), 1);
    }

    #[test]
    fn what_is_removed_leaves_nothing_behind() {
        let texts: Vec<String> = (0..100).map(|number| format!("{number}*")).collect();
        let mut globs = patterns(Match::Glob, &texts);
        texts.iter().for_each(|text| globs.remove(text.as_bytes()));
        globs.remove(b"never*");
        assert_eq!((globs.len(), globs.by_prefix.len(), globs.lengths.len()), (0, 0, 0));
    }
}
