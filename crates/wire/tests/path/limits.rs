//! The length of names and paths, decoded.

use crate::check;
use crate::support::read;
use fairlead_wire::{
    check_path, relative_path,
    PathFault::{self, NameTooLong, PathTooLong},
    PathRules,
};

fn is_refused(path: &str) -> Option<PathFault> {
    check::path(path.as_bytes());
    read(path).err()
}

#[test]
fn a_name_has_at_most_255_bytes() {
    for (unit, bytes) in [
        ("a", 1),
        ("%61", 1),
        ("ü", 2),
        ("%c3%bc", 2),
        ("%e2%82%ac", 3),
        ("😀", 4),
    ] {
        let fits = unit.repeat(255 / bytes);
        let exceeds = unit.repeat(255 / bytes + 1);
        for (before, behind) in [("/", ""), ("/", "/"), ("/a/", "/b"), ("/a/b/", "")] {
            assert_eq!(is_refused(&format!("{before}{fits}{behind}")), None, "{unit}");
            assert_eq!(
                is_refused(&format!("{before}{exceeds}{behind}")),
                Some(NameTooLong),
                "{unit}"
            );
        }
    }
    assert_eq!(is_refused(&format!("/{}", "ä".repeat(127))), None);
    assert_eq!(is_refused(&format!("/a{}", "ä".repeat(127))), None);
    assert_eq!(is_refused(&format!("/aa{}", "ä".repeat(127))), Some(NameTooLong));
}

#[test]
fn a_path_has_at_most_4096_bytes() {
    let long = |length: usize, unit: &str| -> String {
        (0..length).map(|at| if at % 200 == 199 { "/" } else { unit }).collect()
    };
    for unit in ["a", "%61"] {
        assert_eq!(is_refused(&format!("/{}", long(4096, unit))), None);
        assert_eq!(is_refused(&format!("/{}/", long(4096, unit))), None);
        assert_eq!(is_refused(&format!("/{}", long(4097, unit))), Some(PathTooLong));
        assert_eq!(is_refused(&format!("/{}", long(100_000, unit))), Some(PathTooLong));
    }
    assert_eq!(check_path(long(4096, "a").as_bytes(), PathRules::default()), Ok(()));
    assert_eq!(
        check_path(long(4097, "a").as_bytes(), PathRules::default()),
        Err(PathTooLong)
    );
}

/// For a path of any length, the buffer is no larger than for the longest accepted path.
#[test]
fn a_long_path_costs_no_memory() {
    let mut out = Vec::new();
    let path = format!("/{}", "a/".repeat(1 << 20));
    assert_eq!(
        relative_path(path.as_bytes(), PathRules::default(), &mut out),
        Err(PathTooLong)
    );
    assert!(out.capacity() <= 3 * 4096, "{}", out.capacity());
}

/// The work is linear in the length, not quadratic: the longest path, made of names that need the most checks.
#[test]
fn many_names_tildes_and_escapes_are_read_once() {
    for unit in ["~/", "a~1b/", "com/", "%7e", "ü", "~.", "a."] {
        let path = format!("/{}", unit.repeat(4096 / unit.len()));
        check::path(path.as_bytes());
    }
}
