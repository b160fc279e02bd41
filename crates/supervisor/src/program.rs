//! The program: what it begins with, and how it ends.

use crate::signals::Signals;
use crate::start::Start;
use crate::supervisor::{Ended, Supervisor};
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};
use std::process::ExitCode;

/// Exit status after TERM, if the configuration wants TERM to show there (`raise_exception_on_sigterm`).
const TERMINATED: u8 = 128 + 15;

/// Runs the program.
pub fn run() -> ExitCode {
    serve().unwrap_or_else(|reason| {
        eprintln!("fairlead: {}", reason.replace('\n', "\nfairlead: "));
        ExitCode::FAILURE
    })
}

fn serve() -> Result<ExitCode, String> {
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
