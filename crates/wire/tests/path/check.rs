//! Properties of every path; the random tests and the fuzz target use them.

use super::{model, platforms};
use fairlead_wire::{check_path, relative_path, PathKind, PathRules};

/// Checks bytes as a path that was sent and as a decoded path, by both sets of rules. Returns true if they are accepted
/// as sent.
pub(crate) fn path(bytes: &[u8]) -> bool {
    let accepted = [false, true].map(|hidden| sent(bytes, hidden));
    assert!(accepted[1] || !accepted[0], "{}", bytes.escape_ascii());
    decoded(bytes, false);
    decoded(bytes, true);
    accepted[0]
}

fn sent(bytes: &[u8], hidden: bool) -> bool {
    let mut out = b"of another path".to_vec();
    let outcome = relative_path(bytes, PathRules { hidden }, &mut out);
    match (outcome, model::sent(bytes, hidden)) {
        (Ok(kind), Ok(path)) => {
            assert_eq!((&out, kind == PathKind::Folder), (&path.decoded, path.is_folder));
            assert_sound(&out, kind, hidden);
        }
        (Err(fault), Err(faults)) => {
            assert!(
                faults.contains(&fault),
                "{}: {fault:?}, not {faults:?}",
                bytes.escape_ascii()
            );
            assert_eq!(out, b"");
        }
        (outcome, model) => panic!("{}: {outcome:?}, model {model:?}", bytes.escape_ascii()),
    }
    outcome.is_ok()
}

/// A decoded path is accepted, or refused for the same reason, in every encoding.
fn decoded(bytes: &[u8], hidden: bool) {
    let outcome = check_path(bytes, PathRules { hidden });
    let faults = model::decoded(bytes, hidden);
    match outcome {
        Ok(()) => assert_eq!(faults, [], "{}", bytes.escape_ascii()),
        Err(fault) => assert!(
            faults.contains(&fault),
            "{}: {fault:?}, not {faults:?}",
            bytes.escape_ascii()
        ),
    }
    // A slash at the end would be read as the slash of a folder, and be removed.
    if bytes.ends_with(b"/") {
        return;
    }
    let mut out = Vec::new();
    for spelling in [
        encoded(bytes, |_| true),
        encoded(bytes, |byte| !byte.is_ascii_alphanumeric()),
    ] {
        let sent = relative_path(&spelling, PathRules { hidden }, &mut out);
        assert_eq!(sent.map(|_| ()), outcome, "{}", bytes.escape_ascii());
        assert_eq!(out, if outcome.is_ok() { bytes } else { b"" });
    }
}

/// `/` and the path; the bytes that `is_encoded` selects are percent-encoded, but never a slash.
fn encoded(path: &[u8], is_encoded: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut text = b"/".to_vec();
    for &byte in path {
        if byte != b'/' && is_encoded(byte) {
            text.extend(format!("%{byte:02X}").bytes());
        } else {
            text.push(byte);
        }
    }
    text
}

/// An accepted path contains only names, for every system.
fn assert_sound(path: &[u8], kind: PathKind, hidden: bool) {
    assert_eq!(check_path(path, PathRules { hidden }), Ok(()));
    let text = std::str::from_utf8(path).expect("UTF-8");
    assert!(
        path.len() <= 4096 && !text.contains(|character: char| character.is_control() || "\\:".contains(character))
    );
    let names: Vec<&str> = text.split('/').filter(|_| !text.is_empty()).collect();
    assert!(!names.is_empty() || kind == PathKind::Folder);
    for (index, name) in names.iter().enumerate() {
        assert!(!["", ".", ".."].contains(name) && name.len() <= 255, "{text:?}");
        assert!(
            hidden || !name.starts_with('.') || (index, *name) == (0, ".well-known"),
            "{text:?}"
        );
    }
    for (platform, reading) in platforms::readings(text) {
        assert_eq!(reading, names, "{text:?} as {platform} has it");
    }
}
