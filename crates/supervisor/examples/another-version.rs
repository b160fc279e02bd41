//! The supervisor as another version of Fairlead would have it: for tests of restarts from one version to the other. The variable
//! `ANOTHER_VERSION` says which: version, protocol, layout and format of the handover, with "|" between them.

use fairlead_supervisor::versions::{pretend, Versions};
use std::process::ExitCode;

fn main() -> ExitCode {
    let text = std::env::var("ANOTHER_VERSION").unwrap_or_default();
    let words: Vec<&str> = text.split('|').collect();
    let [version, protocol, layout, format] = words[..] else {
        eprintln!("ANOTHER_VERSION is to be VERSION|PROTOCOL|LAYOUT|FORMAT");
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
