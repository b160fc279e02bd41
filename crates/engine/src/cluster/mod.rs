//! What the workers of one server share: the waiting room, in which requests go from one to another, and the scoreboard
//! with the statistics.

pub(crate) mod scoreboard;
pub(crate) mod statistics;
pub(crate) mod waiting_room;
