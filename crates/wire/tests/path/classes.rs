//! The catalogue, tested row by row, and with other names around each row.

use crate::catalogue::{Row, CATALOGUE};
use crate::check;
use crate::support::read;
use fairlead_wire::PathFault::{self, *};

fn rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    CATALOGUE
        .iter()
        .flat_map(|(class, rows)| rows.iter().map(move |row| (*class, row)))
}

#[test]
fn every_class_is_read_or_refused_as_the_table_says() {
    for (class, (path, expected)) in rows() {
        assert_eq!(read(path), expected.map(str::to_owned), "{class}: {path:?}");
        check::path(path.as_bytes());
    }
}

#[test]
fn every_fault_is_in_the_table_but_those_of_length() {
    for fault in PathFault::ALL {
        let has_row = rows().any(|(_, (_, expected))| *expected == Err(*fault));
        assert_eq!(has_row, ![NameTooLong, PathTooLong].contains(fault), "{fault:?}");
    }
}

/// A name that is refused at the top is refused anywhere, with anything after it.
#[test]
fn a_fault_is_one_at_any_depth() {
    for (class, (path, expected)) in rows() {
        let (Err(_), Some(rest)) = (expected, path.strip_prefix('/')) else {
            continue;
        };
        for around in [
            format!("/a/{rest}"),
            format!("/a/b/c/{rest}"),
            format!("{path}/a"),
            format!("/a/{rest}/b/"),
        ] {
            assert!(read(&around).is_err(), "{class}: {around:?}");
            check::path(around.as_bytes());
        }
    }
}
