//! A fake supervisor.

use fairlead_engine::Scoreboard;
use fairlead_supervisor::control::{
    Asked, CgroupMemory, Child, Host, MemoryOf, ProcessMemory, Question, Status, WorkerAnswer,
};
use rustix::pipe::PipeFlags;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

/// The read end and the write end.
fn pipe() -> (OwnedFd, File) {
    let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).unwrap();
    (reader, writer.into())
}

/// State that the server and a test share.
#[derive(Default)]
pub struct Shared {
    pub asked: Mutex<Vec<Asked>>,
    /// The reason for which the host refuses requests; `None` if it accepts them.
    pub refusal: Mutex<Option<String>>,
    pub failures: Mutex<Vec<String>>,
    pub status: Mutex<Option<Status>>,
}

/// A fake supervisor.
pub struct FakeHost {
    pub shared: Arc<Shared>,
    pub scoreboard: Option<Arc<Scoreboard>>,
    /// Receives the other ends of the pipes. Without it, Ruby cannot be asked.
    pub pipes: Option<Sender<(Option<Question>, Vec<File>)>>,
}

impl FakeHost {
    /// With a Ruby that cannot be asked.
    pub fn new(status: Status, scoreboard: Option<Arc<Scoreboard>>) -> FakeHost {
        let shared = Arc::new(Shared::default());
        *shared.status.lock().unwrap() = Some(status);
        let pipes = None;
        FakeHost {
            shared,
            scoreboard,
            pipes,
        }
    }
}

impl Host for FakeHost {
    fn status(&self) -> Status {
        self.shared.status.lock().unwrap().clone().unwrap()
    }

    fn scoreboard(&self) -> Option<&Scoreboard> {
        self.scoreboard.as_deref()
    }

    fn memory(&mut self) -> Vec<ProcessMemory> {
        let worker = MemoryOf::Worker { index: 0, slot: 0 };
        let memory = |of, bytes| ProcessMemory { of, bytes };
        vec![memory(MemoryOf::Supervisor, 5), memory(worker, 7)]
    }

    fn cgroup_memory(&self) -> Option<CgroupMemory> {
        Some(CgroupMemory {
            memory_bytes: 11,
            memory_max_bytes: Some(13),
        })
    }

    fn ask(&mut self, asked: Asked) -> Result<(), String> {
        if let Some(reason) = self.shared.refusal.lock().unwrap().clone() {
            return Err(reason);
        }
        self.shared.asked.lock().unwrap().push(asked);
        Ok(())
    }

    fn ask_ruby(&mut self, question: Question) -> Option<OwnedFd> {
        let pipes = self.pipes.as_ref()?;
        let (reader, writer) = pipe();
        pipes.send((Some(question), vec![writer])).unwrap();
        Some(reader)
    }

    fn ask_workers(&mut self, only: Option<i32>) -> Vec<WorkerAnswer> {
        let mut children = self.status().children;
        children.retain(|child| only.is_none() || child.pid == only);
        let ends: Vec<(OwnedFd, File)> = children.iter().map(|_| pipe()).collect();
        let (readers, writers): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
        self.pipes.as_ref().unwrap().send((None, writers)).unwrap();
        let answer = |(child, reader): (Child, OwnedFd)| WorkerAnswer {
            worker: Some(child.index),
            pid: child.pid,
            pipe: Some(reader),
        };
        children.into_iter().zip(readers).map(answer).collect()
    }

    fn failed(&mut self, reason: &str) {
        self.shared.failures.lock().unwrap().push(reason.to_owned());
    }
}
