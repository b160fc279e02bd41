//! The supervisor pretending to be another version of Fairlead, for tests of restarts from one version to another. The
//! variable `ANOTHER_VERSION` contains the version, protocol, layout and format of the hot restart state, separated by
//! "|".

use fairlead_supervisor::versions::{pretend, Versions};
use std::process::ExitCode;

fn main() -> ExitCode {
    let text = std::env::var("ANOTHER_VERSION").unwrap_or_default();
    let words: Vec<&str> = text.split('|').collect();
    let [version, protocol, layout, format] = words[..] else {
        eprintln!("ANOTHER_VERSION must be VERSION|PROTOCOL|LAYOUT|FORMAT");
        return ExitCode::FAILURE;
    };
    pretend(Versions {
        version: version.into(),
        protocol: protocol.parse().unwrap_or_default(),
        layout: layout.into(),
        format: format.parse().unwrap_or_default(),
    });
    fairlead_supervisor::program::run()
}
