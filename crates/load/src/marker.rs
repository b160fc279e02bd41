//! A marker identifies a message wherever it arrives: its run, its publisher, its sequence number and the time of
//! sending. It consists of plain letters, digits and full stops, so that no server has a reason to escape it, in JSON
//! or elsewhere. It may be anywhere in the received data.

use crate::clock::Nanos;
use memchr::memmem::Finder;
use std::hash::{BuildHasher, RandomState};
use std::io::Write;

/// `fairlead.RUN.PPPPPPPP.SSSSSSSS.TTTTTTTTTTTTTTTT.`, all hexadecimal.
const PREFIX_BYTES: usize = 18;
/// Length of a marker, and of the shortest message.
pub(crate) const BYTES: usize = PREFIX_BYTES + 9 + 9 + 17;

/// The markers of one run; late messages of an earlier run are not recognized.
#[derive(Debug)]
pub(crate) struct Marks {
    prefix: String,
    finder: Finder<'static>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) publisher: u32,
    pub(crate) sequence: u32,
    pub(crate) sent: Nanos,
}

impl Marks {
    pub(crate) fn new() -> Marks {
        // Any 32 bits that are unlikely to occur twice.
        let run = RandomState::new().hash_one(0) as u32;
        let prefix = format!("fairlead.{run:08x}.");
        let finder = Finder::new(prefix.as_bytes()).into_owned();
        Marks { prefix, finder }
    }

    /// Appends a marker.
    pub(crate) fn put(&self, out: &mut Vec<u8>, mark: Mark) {
        let Mark {
            publisher,
            sequence,
            sent,
        } = mark;
        let _ = write!(out, "{}{publisher:08x}.{sequence:08x}.{sent:016x}.", self.prefix);
    }

    /// The first marker in a message.
    pub(crate) fn find(&self, message: &[u8]) -> Option<Mark> {
        let start = self.finder.find(message)? + PREFIX_BYTES;
        let fields = message.get(start..start + BYTES - PREFIX_BYTES)?;
        if (fields[8], fields[17], fields[34]) != (b'.', b'.', b'.') {
            return None;
        }
        Some(Mark {
            publisher: hexadecimal(&fields[..8])? as u32,
            sequence: hexadecimal(&fields[9..17])? as u32,
            sent: hexadecimal(&fields[18..34])?,
        })
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u64::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: Mark = Mark {
        publisher: 7,
        sequence: 0xfedc_ba98,
        sent: 0x0123_4567_89ab_cdef,
    };

    #[test]
    fn a_marker_is_found_wherever_it_is() {
        let marks = Marks::new();
        let mut message = b"{\"message\":\"fairlead.".to_vec();
        marks.put(&mut message, MARK);
        assert_eq!(message.len(), 21 + BYTES);
        assert_eq!(marks.find(&message), Some(MARK), "at the very end");
        message.extend_from_slice(b"xxxx\"}");
        assert_eq!(marks.find(&message), Some(MARK));
    }

    #[test]
    fn what_is_cut_short_or_of_another_run_is_no_marker() {
        let (marks, others) = (Marks::new(), Marks::new());
        let mut message = Vec::new();
        others.put(&mut message, MARK);
        assert_eq!(marks.find(&message), None);
        assert_eq!(others.find(&message[..BYTES - 1]), None);
        message[PREFIX_BYTES] = b'x';
        assert_eq!(others.find(&message), None);
    }
}
