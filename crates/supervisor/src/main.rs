//! The supervisor of a server as a program. The command `fairlead` starts it in its own process; see [`fairlead_supervisor`].

use fairlead_supervisor::signals::Signals;
use fairlead_supervisor::start::Start;
use fairlead_supervisor::supervisor::{Ended, Supervisor};
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::process::ExitCode;

/// Exit status after TERM, if the configuration wants TERM to show there (`raise_exception_on_sigterm`).
const TERMINATED: u8 = 128 + 15;

fn main() -> ExitCode {
    run().unwrap_or_else(|reason| {
        eprintln!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, String> {
    let signals = Signals::open().map_err(|error| error.to_string())?;
    let start = Start::receive()?;
    let first = start.first;
    let mut supervisor = Supervisor::new(start, Some(signals)).inspect_err(|_| end_first(first))?;
    let ended = supervisor.run();
    if let Some(reason) = &ended.defeat {
        supervisor.tell_of_defeat(reason);
    }
    Ok(exit_code(&ended))
}

/// Ends the process that the command has forked, for which there is no supervisor after all.
fn end_first(first: Pid) {
    let _ = kill_process(first, Signal::KILL);
    let _ = waitpid(Some(first), WaitOptions::empty());
}

fn exit_code(ended: &Ended) -> ExitCode {
    match ended {
        Ended { defeat: Some(_), .. } => ExitCode::FAILURE,
        Ended { by_term: true, .. } => ExitCode::from(TERMINATED),
        Ended { status, .. } => ExitCode::from(u8::try_from(*status).unwrap_or(1)),
    }
}
