//! Reports of the kernel about the threads of a process, for a worker that no longer responds.

use crate::wording::shown;
use std::fs;
use std::path::{Path, PathBuf};

/// Index of the time in user mode among the fields after the state. The time in the kernel is next.
const USER_TIME: usize = 10;

/// "ruby in futex_do_wait, fairlead 1 running (61.2 s), fairlead log in poll_schedule_timeout": each thread with the
/// kernel function in which it sleeps, if it may be read, and the processor time that it has used. Empty where the
/// system does not report threads.
pub fn describe(pid: i32) -> String {
    let threads: Vec<String> = tasks(pid).iter().filter_map(|task| one(task)).collect();
    threads.join(", ")
}

/// The folders of the threads, in the order of their ids.
fn tasks(pid: i32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut tasks: Vec<(u32, PathBuf)> = paths.filter_map(|path| Some((thread_id(&path)?, path))).collect();
    tasks.sort();
    tasks.into_iter().map(|(_, path)| path).collect()
}

fn thread_id(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.parse().ok()
}

/// One thread; `None` if it has ended.
fn one(task: &Path) -> Option<String> {
    let stat = shown(&fs::read(task.join("stat")).ok()?);
    let (name, fields) = stat.split_once('(')?.1.rsplit_once(") ")?;
    let (state, fields) = fields.split_once(' ')?;
    let times = fields.split_whitespace().skip(USER_TIME).take(2);
    let ticks: f64 = times.filter_map(|time| time.parse::<f64>().ok()).sum();
    let seconds = ticks / rustix::param::clock_ticks_per_second() as f64;
    let place = place(task, state)?;
    Some(match seconds >= 0.1 {
        true => format!("{name} {place} ({seconds:.1} s)"),
        false => format!("{name} {place}"),
    })
}

fn place(task: &Path, state: &str) -> Option<String> {
    Some(match state {
        "R" => "running".into(),
        "T" | "t" => "stopped".into(),
        "Z" | "X" => "ended".into(),
        _ => asleep_in(&fs::read_to_string(task.join("wchan")).ok()?),
    })
}

/// `function`: "futex_do_wait", or "0" if it may not be read.
fn asleep_in(function: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    match function
        .split(|character| !is_word(character))
        .find(|word| !word.is_empty())
    {
        Some(word) if function.contains(|character: char| character.is_ascii_lowercase()) => format!("in {word}"),
        _ => "asleep".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{kill_process, Pid, Signal};
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    /// A process, killed when dropped.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Waits until the description of a process contains this text.
    fn wait_for(pid: i32, expected: &str) {
        let began = Instant::now();
        while !describe(pid).contains(expected) {
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "{expected}: {}",
                describe(pid)
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn it_tells_which_process_runs_is_stopped_and_has_ended() {
        let busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        let mut busy = Killed(busy.expect("a process"));
        let pid = busy.0.id() as i32;
        wait_for(pid, "sh running (0.");
        kill_process(Pid::from_child(&busy.0), Signal::STOP).expect("a process");
        wait_for(pid, "sh stopped (0.");
        busy.0.kill().expect("a process");
        wait_for(pid, "sh ended (0.");
        drop(busy);
        assert_eq!(describe(pid), "");
    }

    #[test]
    fn all_threads_are_told_of_in_the_order_of_their_ids() {
        let pid = std::process::id() as i32;
        let (_open, gate) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::Builder::new().name("a (b) c".into());
        let _ = sleeper.spawn(move || gate.recv()).expect("a thread");
        wait_for(pid, "a (b) c ");
        let threads = describe(pid);
        let (first, second) = (threads.find("fairlead"), threads.find("a (b) c"));
        assert!(first.is_some() && first < second, "{threads}");
    }

    #[test]
    fn a_thread_that_sleeps_is_told_of_with_its_function_or_without() {
        let sleeper = Command::new("sleep").arg("60").spawn();
        let sleeper = Killed(sleeper.expect("a process"));
        let pid = sleeper.0.id() as i32;
        let began = Instant::now();
        while !["sleep asleep", "sleep in "]
            .iter()
            .any(|text| describe(pid).starts_with(text))
        {
            assert!(began.elapsed() < Duration::from_secs(20), "{}", describe(pid));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_function_is_told_if_the_kernel_says_it() {
        assert_eq!(asleep_in("futex_do_wait"), "in futex_do_wait");
        assert_eq!(asleep_in("do_wait+0x10"), "in do_wait");
        assert_eq!([asleep_in("0"), asleep_in("")], ["asleep", "asleep"]);
    }
}
