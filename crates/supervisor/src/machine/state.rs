//! States, and their permitted transitions.

/// A state: an enum with a list of its transitions. The diagram in the doc of [`machine`](super) shows the same list.
pub(super) trait Lifecycle: Sized {
    /// The permitted transitions, by the names of the variants.
    const TRANSITIONS: &'static [(&'static str, &'static str)];

    /// The name of the variant.
    fn name(&self) -> &'static str;

    /// Enters the next state. All transitions use this method.
    fn enter(&mut self, next: Self) {
        debug_assert!(
            Self::TRANSITIONS.contains(&(self.name(), next.name())),
            "no transition from {} to {}",
            self.name(),
            next.name()
        );
        *self = next;
    }
}

/// Implements `Lifecycle::name` for an enum.
macro_rules! names {
    ($state:ident: $($variant:ident),+ $(,)?) => {
        fn name(&self) -> &'static str {
            match self {
                $($state::$variant { .. } => stringify!($variant),)+
            }
        }
    };
}
pub(super) use names;

#[cfg(test)]
mod tests {
    use super::super::recycling::RecyclingState;
    use super::super::restart_state::RestartState;
    use super::super::server::Server;
    use super::super::spawner::SpawnerState;
    use super::super::worker::WorkerState;
    use super::Lifecycle;
    use std::collections::BTreeSet;

    /// The transitions that the diagram in the doc of the module shows for one of the enums.
    fn drawn(title: &str) -> BTreeSet<(&'static str, &'static str)> {
        let lines = include_str!("mod.rs")
            .lines()
            .filter_map(|line| line.strip_prefix("//! "));
        let diagram = lines
            .skip_while(|line| *line != "```text")
            .skip(1)
            .take_while(|line| *line != "```");
        let mut current = "";
        let mut changes = BTreeSet::new();
        for line in diagram {
            let chain = match line.split_once(':') {
                Some((name, chain)) => {
                    current = name;
                    chain
                }
                None => line,
            };
            let states: Vec<&str> = chain.split("->").map(str::trim).collect();
            if current == title {
                changes.extend(states.windows(2).map(|pair| (pair[0], pair[1])));
            }
        }
        changes
    }

    fn allowed<S: Lifecycle>() -> BTreeSet<(&'static str, &'static str)> {
        S::TRANSITIONS.iter().copied().collect()
    }

    #[test]
    fn the_diagram_shows_the_transitions_of_the_code() {
        assert_eq!(drawn("Server"), allowed::<Server>());
        assert_eq!(drawn("Spawner"), allowed::<SpawnerState>());
        assert_eq!(drawn("Worker"), allowed::<WorkerState>());
        assert_eq!(drawn("Recycling"), allowed::<RecyclingState>());
        assert_eq!(drawn("Restart"), allowed::<RestartState>());
    }
}
