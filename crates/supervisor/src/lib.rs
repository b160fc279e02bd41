//! The supervisor of a server: it starts, watches and replaces spawners and workers, holds what they share, and answers the
//! control and health servers. It loads neither Ruby nor the application.

pub mod control;
pub mod machine;
pub mod settings;
