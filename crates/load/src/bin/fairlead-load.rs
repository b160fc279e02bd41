//! The load tool without Ruby. The first SIGINT ends the run and prints its report, the second ends the process.

#![forbid(unsafe_code)]

use signal_hook::consts::SIGINT;
use signal_hook::low_level::pipe;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

fn main() {
    if let Err(error) = stop_on_interrupt() {
        eprintln!("fairlead-load: SIGINT will not print a report: {error}");
    }
    let args: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    std::process::exit(fairlead_load::main(&args));
}

fn stop_on_interrupt() -> std::io::Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register_conditional_shutdown(SIGINT, 130, Arc::clone(&interrupted))?;
    signal_hook::flag::register(SIGINT, interrupted)?;
    let (mut signals, write_end) = UnixStream::pair()?;
    pipe::register(SIGINT, write_end)?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        while signals.read_exact(&mut [0]).is_ok() {
            fairlead_load::stop();
        }
    })?;
    Ok(())
}
