//! The supervisor of a server: it starts, watches and replaces spawners and workers, owns their shared resources, and
//! runs the control and health servers. It loads neither Ruby nor the application.

#![forbid(unsafe_code)]

pub mod acme;
pub mod adoption;
pub mod asks;
pub mod background;
pub mod certificates;
pub mod cgroup;
pub mod children;
pub mod configuration;
pub mod control;
pub mod fleet;
pub mod hot_restart_state;
pub mod idleness;
pub mod insistence;
pub mod link;
pub mod listeners;
pub mod log;
pub mod machine;
pub mod memory_use;
pub mod native_threads;
pub mod pid_file;
pub mod process_memory;
pub mod program;
pub mod publishing;
pub mod restart_file;
pub mod restart_signals;
pub mod running_time;
pub mod settings;
pub mod signals;
pub mod spawning;
pub mod standard_streams;
pub mod start;
pub mod state_file;
pub mod strangers;
pub mod supervisor;
pub mod systemd;
pub mod versions;
pub mod whole_file;
pub mod wording;
