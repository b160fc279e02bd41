//! Orphans of the application: the kernel makes the supervisor their parent.

use crate::children::{Child, Children};
use fairlead_system::processes::adopt_orphans;
use rustix::process::{waitpid, Pid, WaitOptions};

/// Takes the status of orphans of the application, because the kernel makes this process their parent.
#[derive(Debug, Default)]
pub struct Strangers {
    seen: Vec<Pid>,
}

impl Strangers {
    /// Makes this process the parent of the server's orphans from now on. Workers need this, too: no other process
    /// waits for an ended spawner's children.
    pub fn adopt() {
        adopt_orphans(true);
    }

    /// Reverts this if this process is the only one left, and serves itself: children of the application could not be
    /// distinguished from orphans.
    pub fn leave_alone(children: &Children) {
        if children.iter().all(Child::is_resident) {
            adopt_orphans(false);
        }
    }

    /// Reaps orphans that had already ended at the last check: other code may be about to reap them. Leaves `children`
    /// alone.
    pub fn reap(&mut self, children: &Children) {
        if children.iter().any(Child::is_resident) {
            return Strangers::leave_alone(children); // the application waits for its own children
        }
        let ended: Vec<Pid> = ended_children()
            .into_iter()
            .filter(|pid| {
                !children
                    .iter()
                    .any(|child| child.pid() == Some(pid.as_raw_nonzero().get()))
            })
            .collect();
        let (reaped, seen) = ended.into_iter().partition(|pid| self.seen.contains(pid));
        self.seen = seen;
        let reaped: Vec<Pid> = reaped;
        for pid in reaped {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn ended_children() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let pids: Vec<i32> = lists
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    pids.into_iter()
        .filter(|pid| is_zombie(*pid))
        .filter_map(Pid::from_raw)
        .collect()
}

fn is_zombie(pid: i32) -> bool {
    std::fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| says_zombie(&stat))
}

/// The state stands behind the name, which has any bytes and ends at the last parenthesis.
fn says_zombie(stat: &[u8]) -> bool {
    let end = stat.iter().rposition(|byte| *byte == b')');
    end.is_some_and(|end| stat[end..].starts_with(b") Z "))
}

#[cfg(test)]
mod tests {
    use super::says_zombie;

    #[test]
    fn a_zombie_may_have_any_name() {
        assert!(says_zombie(b"7 (ruby) Z 1 7 7 0") && says_zombie(b"7 (na\xEFve) Z 1 7"));
        assert!(!says_zombie(b"7 (a) Z b) S 1 7") && !says_zombie(b"7 (ruby) S 1 7") && !says_zombie(b""));
    }
}
