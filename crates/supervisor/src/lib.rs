//! The supervisor of a server: it starts, watches and replaces spawners and workers, holds what they share, and answers the
//! control and health servers. It loads neither Ruby nor the application.

pub mod background;
pub mod certificates;
pub mod children;
pub mod configuration;
pub mod fleet;
pub mod link;
pub mod listeners;
pub mod control;
pub mod machine;
pub mod settings;
pub mod signals;
pub mod spawning;
pub mod adoption;
pub mod start;
