//! The files that a path means to systems with other rules for names than Linux. Each system is imitated in the ways
//! that attackers have used to get past a check.

use super::model;
use std::path::{Component, Path};

/// The names that each system looks up for a relative path, one after the other.
pub(crate) fn readings(path: &str) -> Vec<(&'static str, Vec<String>)> {
    vec![
        ("POSIX", posix(path)),
        ("C", posix(path.split('\0').next().unwrap_or_default())),
        ("Windows", windows(path)),
        ("HFS+", hfs(path)),
        ("compatibility folding", posix(&folded(path))),
        ("path parameters", without_parameters(path)),
    ]
}

fn posix(path: &str) -> Vec<String> {
    let name = |component: Component<'_>| component.as_os_str().to_string_lossy().into_owned();
    resolve(Path::new("root").join(path).components().skip(1).map(name))
}

/// Win32: both slashes separate, a colon begins a stream, dots and spaces at the end do not count, devices are in every
/// folder, short names are aliases, and some characters are forbidden.
fn windows(path: &str) -> Vec<String> {
    resolve(path.split(['/', '\\']).map(|name| {
        let forbidden = |character| character < ' ' || "<>\"|?*".contains(character);
        let name = name.split(':').next().unwrap_or_default();
        let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
        if name.contains(forbidden) {
            "no name".to_owned()
        } else if opens_device(stem.trim_end()) {
            "a device".to_owned()
        } else if is_numbered(stem) && stem.len() <= 8 && extension.len() <= 3 && !extension.contains('.') {
            "a long name".to_owned()
        } else if name == ".." {
            name.to_owned()
        } else {
            name.trim_end_matches(['.', ' ']).to_owned()
        }
    }))
}

fn opens_device(stem: &str) -> bool {
    let stem = stem.to_lowercase();
    let port = stem.strip_prefix("com").or_else(|| stem.strip_prefix("lpt"));
    let is_port = port.is_some_and(|port| port.chars().count() == 1 && "0123456789¹²³".contains(port));
    is_port || ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"].contains(&stem.as_str())
}

fn is_numbered(stem: &str) -> bool {
    let without = stem.trim_end_matches(|digit: char| digit.is_ascii_digit());
    without.len() < stem.len() && without.ends_with('~')
}

/// HFS+ drops invisible characters; the layer above it shows its slashes as colons.
fn hfs(path: &str) -> Vec<String> {
    let shown = |&character: &char| model::becomes(character) != Some("nothing");
    posix(&path.chars().filter(shown).collect::<String>().replace(':', "/"))
}

/// Characters that look like a dot or a slash become one.
fn folded(path: &str) -> String {
    let fold = |character: char| match model::becomes(character) {
        Some("nothing") => String::new(),
        Some(becomes) => becomes.replace('\\', "/"),
        None => character.to_string(),
    };
    path.chars().map(fold).collect()
}

/// Some Java servers remove parameters from every name.
fn without_parameters(path: &str) -> Vec<String> {
    let bare = |name: &str| {
        if name.starts_with("..;") {
            "..".to_owned()
        } else {
            name.to_owned()
        }
    };
    resolve(path.split('/').map(bare))
}

/// Resolves the names: an empty name or `.` stays, `..` goes up. Marks a path that leaves the root.
fn resolve(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut resolved = Vec::new();
    for name in names {
        match name.as_str() {
            "" | "." => {}
            ".." => {
                if resolved.pop().is_none() {
                    return vec!["outside".to_owned()];
                }
            }
            _ => resolved.push(name),
        }
    }
    resolved
}
