//! The supervisor of a server as a program. The command `fairlead` starts it in its own process; see [`fairlead_supervisor`].

use fairlead_supervisor::signals::Signals;
use fairlead_supervisor::start::Start;
use fairlead_supervisor::supervisor::{Ended, Supervisor};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(ended) => end(&ended),
        Err(reason) => defeat(&reason),
    }
}

fn run() -> Result<Ended, String> {
    let signals = Signals::open().map_err(|error| error.to_string())?;
    let start = Start::receive()?;
    Ok(Supervisor::new(start, Some(signals))?.run())
}

fn end(ended: &Ended) -> ExitCode {
    if let Some(reason) = &ended.defeat {
        return defeat(reason);
    }
    if ended.by_term {
        end_by_term();
    }
    ExitCode::from(u8::try_from(ended.status).unwrap_or(1))
}

/// The server could not start.
fn defeat(reason: &str) -> ExitCode {
    eprintln!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
    ExitCode::FAILURE
}

/// Ends this process as TERM does to a program that does not handle it.
fn end_by_term() {
    let mut term = nix::sys::signal::SigSet::empty();
    term.add(nix::sys::signal::Signal::SIGTERM);
    let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM);
    let _ = term.thread_unblock();
}
