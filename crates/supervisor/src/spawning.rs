//! Starts a spawner by running the command of the server again. The spawner gets nothing of this process except its
//! link.

use crate::settings::CommandLine;
use crate::wording::{reason, shown};
use command_fds::{CommandFdExt, FdMapping};
use fairlead_system::processes;
use rustix::process::Pid;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

/// The variable with the descriptor of the link, for a spawner.
const VARIABLE: &str = "FAIRLEAD_SPAWNER";

/// The descriptor of the link in a spawner.
const LINK: i32 = 3;

/// A started process.
#[derive(Debug)]
pub struct Started {
    /// Its id, which it keeps until its status is taken.
    pub pid: Pid,
    /// Readable when it has ended.
    pub pidfd: Option<OwnedFd>,
}

/// Runs the command in its folder. `link`: the end of the spawner.
///
/// May block: the folder or the program can be on a disk that hangs.
///
/// # Errors
/// Errors of fork(2), chdir(2) and execve(2).
pub fn start(command: &CommandLine, link: OwnedFd) -> io::Result<Started> {
    let (program, arguments) = command.words.split_first().ok_or_else(unknown_command)?;
    let environment = command.environment.iter().map(|(name, value)| (name.os(), value.os()));
    let mut child = Command::new(program.os());
    child
        .args(arguments.iter().map(|word| word.os()))
        .current_dir(command.folder.path())
        .env_clear()
        .envs(environment)
        .env("PWD", command.folder.os())
        .env(VARIABLE, LINK.to_string())
        .stdin(Stdio::inherit());
    let mapping = FdMapping {
        parent_fd: link,
        child_fd: LINK,
    };
    child.fd_mappings(vec![mapping]).map_err(io::Error::other)?;
    let child = child.spawn().map_err(|error| with_name(error, command))?;
    let pid = Pid::from_raw(child.id() as i32).ok_or(ErrorKind::Other)?;
    Ok(Started {
        pid,
        pidfd: processes::descriptor(pid),
    })
}

/// Names the folder or the program that cannot be used.
fn with_name(error: io::Error, command: &CommandLine) -> io::Error {
    if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) {
        return error;
    }
    let attempt = match command.words.first() {
        Some(program) if command.folder.path().is_dir() => format!("run {}", shown(program.bytes())),
        _ => format!("change to {}", shown(command.folder.bytes())),
    };
    io::Error::new(error.kind(), format!("cannot {attempt}: {}", reason(&error)))
}

/// The program has replaced its command line with another title.
fn unknown_command() -> io::Error {
    io::Error::other("the command of this server is unknown; set restart_command")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Link, Received};
    use crate::settings::SystemText;
    use rustix::process::{waitpid, WaitOptions};
    use std::ffi::OsString;

    fn text(text: &str) -> SystemText {
        SystemText::from(OsString::from(text))
    }

    fn command(script: &str) -> CommandLine {
        CommandLine {
            words: ["/bin/bash", "-c", script].map(text).to_vec(),
            folder: text("/"),
            environment: vec![(text("KEPT"), text("yes"))],
        }
    }

    fn end_of(started: &Started) -> Option<i32> {
        let (_, status) = waitpid(Some(started.pid), WaitOptions::empty()).ok()??;
        status.exit_status()
    }

    #[test]
    fn a_spawner_gets_its_link_and_the_environment_of_the_command() {
        let (ours, theirs) = Link::pair().expect("a pair");
        let length = match fairlead_system::IS_PORTABLE {
            true => 4_u32.to_ne_bytes().map(|byte| format!("\\{byte:03o}")).concat(),
            false => String::new(),
        };
        let script = r#"printf 'LENGTHsaid' >&"$FAIRLEAD_SPAWNER"; test "$PWD $KEPT ${CARGO-none}" = "/ yes none""#;
        let started = start(&command(&script.replace("LENGTH", &length)), theirs.into_socket()).expect("a process");
        assert_eq!(end_of(&started), Some(0));
        assert!(matches!(ours.receive(), Received::Message(message) if message.kind == "said"));
        assert!(matches!(ours.receive(), Received::Gone));
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error() {
        let (_ours, theirs) = Link::pair().expect("a pair");
        let command = CommandLine {
            folder: text("/nowhere"),
            ..command("true")
        };
        let error = start(&command, theirs.into_socket()).expect_err("no folder");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            error.to_string(),
            "cannot change to /nowhere: No such file or directory"
        );
    }

    #[test]
    fn a_program_that_is_gone_is_an_error() {
        let (_ours, theirs) = Link::pair().expect("a pair");
        let command = CommandLine {
            words: vec![text("/nowhere/ruby")],
            ..command("true")
        };
        let error = start(&command, theirs.into_socket()).expect_err("no program");
        assert_eq!(error.to_string(), "cannot run /nowhere/ruby: No such file or directory");
    }
}
