//! Deadlines of many things of which most are postponed before they pass: an idle connection that gets a request, a client
//! that answers a ping.
//!
//! A thing is noted for a time that is not after its deadline. A later deadline changes nothing until that time has come:
//! then its owner looks at the real deadline, and notes the thing again. So to postpone a deadline costs a comparison, and
//! the search for passed deadlines costs nothing for the others.

use crate::clock::Millis;
use std::collections::BTreeSet;

/// Most things of a kind that one turn of the reactor looks at because of their deadlines. The next turns look at the
/// others, so that requests that have arrived meanwhile do not wait for thousands of timeouts in the same second.
pub(crate) const MOST_OF_A_TURN: usize = 128;

/// See the head of this file. Each thing keeps the time for which it is noted, [`Millis::NEVER`] at first.
#[derive(Debug)]
pub(crate) struct Agenda<K>(BTreeSet<(Millis, K)>);

impl<K: Ord> Default for Agenda<K> {
    fn default() -> Self {
        Agenda(BTreeSet::new())
    }
}

impl<K: Ord + Copy> Agenda<K> {
    /// Notes `key` for `deadline`, unless it is `noted` for an earlier time. Returns the time for which it is noted now.
    pub(crate) fn note(&mut self, key: K, noted: Millis, deadline: Millis) -> Millis {
        if deadline >= noted {
            return noted;
        }
        self.remove(key, noted);
        self.0.insert((deadline, key));
        deadline
    }

    /// Forgets `key`, which is `noted` for this time.
    pub(crate) fn remove(&mut self, key: K, noted: Millis) {
        if noted != Millis::NEVER {
            self.0.remove(&(noted, key));
        }
    }

    /// Takes a key that is noted for `now` or earlier. It is not noted any more.
    pub(crate) fn take_due(&mut self, now: Millis) -> Option<K> {
        let (noted, _) = self.0.first()?;
        if *noted > now {
            return None;
        }
        self.0.pop_first().map(|(_, key)| key)
    }

    /// The first time for which something is noted.
    pub(crate) fn first(&self) -> Millis {
        self.0.first().map_or(Millis::NEVER, |(noted, _)| *noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(milliseconds: u64) -> Millis {
        Millis::START + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_thing_is_due_at_its_first_deadline_once() {
        let mut agenda = Agenda::default();
        let noted = agenda.note('a', Millis::NEVER, at(20));
        assert_eq!(
            agenda.note('a', noted, at(30)),
            at(20),
            "a later deadline waits for the first one"
        );
        let noted = agenda.note('a', noted, at(10));
        assert_eq!((noted, agenda.first()), (at(10), at(10)));
        agenda.note('b', Millis::NEVER, at(15));
        assert_eq!(agenda.take_due(at(9)), None);
        assert_eq!(agenda.take_due(at(20)), Some('a'));
        assert_eq!(agenda.take_due(at(20)), Some('b'));
        assert_eq!((agenda.take_due(at(99)), agenda.first()), (None, Millis::NEVER));
    }

    #[test]
    fn a_thing_that_is_gone_is_never_due() {
        let mut agenda = Agenda::default();
        let noted = agenda.note(1, Millis::NEVER, at(20));
        agenda.remove(1, noted);
        agenda.remove(2, Millis::NEVER);
        assert_eq!(agenda.first(), Millis::NEVER);
    }
}
