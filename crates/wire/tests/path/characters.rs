//! Every character of Unicode, against the list of forbidden ones.

use crate::model;
use crate::support::{encoded, read};
use fairlead_wire::{check_path, PathFault, PathRules};

#[test]
fn every_character_is_accepted_unless_it_is_listed() {
    for character in '\u{80}'..=char::MAX {
        let outcome = check_path(format!("x{character}y").as_bytes(), PathRules::default());
        let expected = match model::becomes(character) {
            Some(_) => Err(PathFault::DeceptiveCharacter),
            None if character.is_control() => Err(PathFault::ControlCharacter),
            None => Ok(()),
        };
        assert_eq!(outcome, expected, "{}", character.escape_unicode());
    }
}

#[test]
fn a_listed_character_is_refused_alone_encoded_and_at_either_end() {
    for character in ['\u{ff0e}', '\u{2215}', '\u{200b}', '\u{e0041}'] {
        for name in [
            format!("{character}"),
            format!("{character}a"),
            format!("a{character}"),
            format!("a/{character}/b"),
        ] {
            assert_eq!(read(format!("/{name}")), Err(PathFault::DeceptiveCharacter));
            assert_eq!(
                read(encoded(format!("/{name}").as_bytes())),
                Err(PathFault::DeceptiveCharacter)
            );
        }
    }
}

/// Every sequence of up to three bytes beyond ASCII is a character, or invalid UTF-8.
#[test]
fn sequences_of_bytes_are_characters_or_refused() {
    for first in 0x80..=255_u8 {
        for second in 0x80..=255_u8 {
            for sequence in [
                vec![first],
                vec![first, second],
                vec![first, second, 0x80],
                vec![0xf0, first, second, 0xbf],
            ] {
                let expected = std::str::from_utf8(&sequence).ok();
                let expected = expected.filter(|text| {
                    text.chars()
                        .all(|one| model::becomes(one).is_none() && !one.is_control())
                });
                assert_eq!(
                    check_path(&sequence, PathRules::default()).is_ok(),
                    expected.is_some(),
                    "{sequence:x?}"
                );
            }
        }
    }
}
