//! The search through all states.

use crate::rules;
use crate::world::{Move, Scenario, World};
use fairlead_supervisor::machine::Command;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};

/// Limit of states: a search that exceeds it does not end.
const MOST_STATES: usize = 2_000_000;

/// Most steps from any state to a normal one.
const MOST_STEPS: usize = 300;

/// The rule that a search ends.
pub(crate) const TOO_MANY: &str = "too many states";

/// The rule that a server returns to normal, or ends.
const STUCK: &str = "it never returns to normal";

/// Number of steps in a story after the violation.
const CALM_STEPS: usize = 40;

/// All explored states.
pub(crate) struct Search<'a> {
    scenario: &'a Scenario,
    /// The number of each state, by its fingerprint.
    numbers: HashMap<u128, usize>,
    nodes: Vec<Node>,
    stack: Vec<(usize, World)>,
    pub(crate) transitions: usize,
    most: usize,
}

struct Node {
    parent: usize,
    made: Option<Move>,
    /// The next state if no fault happens.
    calm: Option<usize>,
    goal: bool,
}

impl Violation {
    /// The steps to the violation, with the actions of the machine at each step.
    pub(crate) fn story(&self, scenario: &Scenario) -> String {
        let mut world = World::new(scenario);
        let mut lines = vec![format!("{}: {}", scenario.title, self.rule)];
        for made in &self.way {
            let actions = world.make(made, scenario);
            lines.push(format!("{made:?}\n    {actions:?}"));
        }
        lines.push("... and then, without further faults:".to_owned());
        for _ in 0..CALM_STEPS {
            let Some(made) = world.moves(scenario).into_iter().next() else {
                break;
            };
            let actions = world.make(&made, scenario);
            lines.push(format!("{made:?}\n    {actions:?}"));
        }
        lines.push(format!("{world:?}"));
        lines.join("\n")
    }
}

/// A violated rule, and the steps that lead to it.
pub(crate) struct Violation {
    pub(crate) rule: String,
    pub(crate) way: Vec<Move>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Search<'a> {
        Search::with_most(scenario, MOST_STATES)
    }

    /// A search that gives up after `most` states.
    pub(crate) fn with_most(scenario: &'a Scenario, most: usize) -> Search<'a> {
        let mut search = Search {
            scenario,
            numbers: HashMap::new(),
            nodes: Vec::new(),
            stack: Vec::new(),
            transitions: 0,
            most,
        };
        search.number(World::new(scenario), 0, None);
        search
    }

    pub(crate) fn states(&self) -> usize {
        self.nodes.len()
    }

    /// Explores all states.
    pub(crate) fn run(&mut self) -> Result<(), Violation> {
        while let Some((number, world)) = self.stack.pop() {
            self.expand(number, &world)?;
            if self.nodes.len() > self.most {
                self.check_progress()?;
                return Err(Violation {
                    rule: TOO_MANY.to_owned(),
                    way: self.way(number),
                });
            }
        }
        self.check_progress()
    }

    fn expand(&mut self, number: usize, world: &World) -> Result<(), Violation> {
        let most = self.scenario.workers.max(self.scenario.next).max(1) + self.added();
        let least = self.scenario.workers.min(self.scenario.next).max(1);
        let unharmed = world.faults == self.scenario.faults;
        for made in world.moves(self.scenario) {
            let mut next = world.clone();
            let actions = next.make(&made, self.scenario);
            self.transitions += 1;
            if let Err(rule) = rules::check(world, &made, &actions, &next, most, least, unharmed) {
                let mut way = self.way(number);
                way.push(made);
                return Err(Violation { rule, way });
            }
            let calm = made.calm() && self.nodes[number].calm.is_none();
            let follower = self.number(next, number, Some(made));
            if calm {
                self.nodes[number].calm = Some(follower);
            }
        }
        Ok(())
    }

    /// Workers that commands may add.
    fn added(&self) -> usize {
        usize::from(self.scenario.commands.contains(&Command::AddWorker)) * usize::from(self.scenario.asked)
    }

    fn number(&mut self, world: World, parent: usize, made: Option<Move>) -> usize {
        let number = self.nodes.len();
        match self.numbers.entry(fingerprint(&world)) {
            Entry::Occupied(entry) => return *entry.get(),
            Entry::Vacant(entry) => entry.insert(number),
        };
        self.nodes.push(Node {
            parent,
            made,
            calm: None,
            goal: rules::goal(&world),
        });
        self.stack.push((number, world));
        number
    }

    /// From every state, the server returns to normal, or ends, within a limited number of steps, if no more faults
    /// happen. Steps to unexplored states are not checked.
    fn check_progress(&self) -> Result<(), Violation> {
        let mut good: Vec<bool> = self.nodes.iter().map(|node| node.goal).collect();
        for start in 0..self.nodes.len() {
            let mut way = Vec::new();
            let mut at = start;
            while !good[at] {
                way.push(at);
                if way.len() > MOST_STEPS {
                    return Err(Violation {
                        rule: STUCK.to_owned(),
                        way: self.way(start),
                    });
                }
                match self.nodes[at].calm {
                    Some(next) => at = next,
                    None if self.stack.is_empty() => {
                        return Err(Violation {
                            rule: STUCK.to_owned(),
                            way: self.way(start),
                        });
                    }
                    None => break,
                }
            }
            if good[at] {
                for passed in way {
                    good[passed] = true;
                }
            }
        }
        Ok(())
    }

    fn way(&self, mut number: usize) -> Vec<Move> {
        let mut way = Vec::new();
        while let Some(made) = &self.nodes[number].made {
            way.push(made.clone());
            number = self.nodes[number].parent;
        }
        way.reverse();
        way
    }
}

/// Two numbers that are mixed with all hashed values: faster than the hasher of the standard library in a debug build.
struct Fingerprint(u64, u64);

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.write_u64(chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.1 = (self.1.rotate_left(23) ^ number).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.1
    }
}

fn fingerprint(world: &World) -> u128 {
    let mut hasher = Fingerprint(1, 2);
    world.hash(&mut hasher);
    u128::from(hasher.0 ^ hasher.1 >> 32) << 64 | u128::from(hasher.1)
}
