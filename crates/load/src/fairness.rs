//! Fairness of a run between its connections.

use serde::Serialize;

/// Requests and responses of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Requests that the connection wanted to send.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
}

/// Distribution of the responses over the connections that sent requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Fairness {
    /// Jain's index: (Σx)² / (n Σx²); 1 if all got the same, 1/n if one got everything. `None` without responses.
    pub(crate) jain: Option<f64>,
    pub(crate) least: u64,
    pub(crate) most: u64,
    pub(crate) least_to_most: Option<f64>,
    /// Numbers (from 1) of the connections that sent requests but got no response while others did.
    pub(crate) never_served: Vec<usize>,
}

impl Fairness {
    pub(crate) fn of(connections: &[Served]) -> Fairness {
        let counts = || {
            connections
                .iter()
                .filter(|served| served.asked > 0)
                .map(|served| served.answered)
        };
        let (least, most) = (counts().min().unwrap_or(0), counts().max().unwrap_or(0));
        let (sum, squares) = counts().fold((0.0, 0.0), |(sum, squares), n| {
            (sum + n as f64, squares + (n as f64).powi(2))
        });
        let jain = (squares > 0.0).then(|| sum * sum / (counts().count() as f64 * squares));
        let hungry = |served: &Served| most > 0 && served.asked > 0 && served.answered == 0;
        let never_served = (1..)
            .zip(connections)
            .filter(|(_, served)| hungry(served))
            .map(|(number, _)| number);
        Fairness {
            jain,
            least,
            most,
            least_to_most: (most > 0).then(|| least as f64 / most as f64),
            never_served: never_served.collect(),
        }
    }
}

/// Fairness between the streams of a connection: the worst of all connections that have several.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Within {
    pub(crate) jain: Option<f64>,
    pub(crate) least_to_most: Option<f64>,
    /// Streams that sent requests but got no response while others of their connection did.
    pub(crate) never_served: usize,
}

impl Within {
    pub(crate) fn of(streams: &[Vec<Served>]) -> Within {
        let least = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
        let several = streams.iter().filter(|streams| streams.len() > 1);
        several
            .map(|streams| Fairness::of(streams))
            .fold(Within::default(), |worst, each| Within {
                jain: least(worst.jain, each.jain),
                least_to_most: least(worst.least_to_most, each.least_to_most),
                never_served: worst.never_served + each.never_served.len(),
            })
    }
}

/// Average responses of some connections, in equal shares: 1 is fair. `None` without responses.
pub(crate) fn share(some: &[Served], all: &[Served]) -> Option<f64> {
    let mean = |connections: &[Served]| {
        let sum: u64 = connections.iter().map(|served| served.answered).sum();
        sum as f64 / connections.len().max(1) as f64
    };
    (mean(all) > 0.0).then(|| mean(some) / mean(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(answers: &[u64]) -> Vec<Served> {
        let served = |&answered: &u64| Served {
            asked: answered + 1,
            answered,
            failed: 0,
        };
        answers.iter().map(served).collect()
    }

    #[test]
    fn jain_is_one_when_all_got_the_same_and_one_nth_when_one_got_everything() {
        let jain = |answers: &[u64]| Fairness::of(&served(answers)).jain;
        assert_eq!(jain(&[7, 7, 7, 7]), Some(1.0));
        assert_eq!(jain(&[9, 0, 0, 0]), Some(0.25));
        assert_eq!(jain(&[0, 0]), None);
    }

    #[test]
    fn never_served_needs_a_request_and_a_luckier_neighbour() {
        let mut connections = served(&[5, 0, 3, 0]);
        connections[3].asked = 0;
        let fairness = Fairness::of(&connections);
        assert_eq!(fairness.never_served, [2]);
        assert_eq!(
            (fairness.least, fairness.most, fairness.least_to_most),
            (0, 5, Some(0.0))
        );
        assert_eq!(Fairness::of(&served(&[0, 0])).never_served, Vec::<usize>::new());
    }

    #[test]
    fn the_least_even_connection_speaks_for_the_streams_of_all() {
        let streams = [served(&[5, 5]), served(&[8, 0, 0, 0]), served(&[1])];
        let within = Within::of(&streams);
        assert_eq!(
            (within.jain, within.least_to_most, within.never_served),
            (Some(0.25), Some(0.0), 3)
        );
        assert_eq!(Within::of(&[served(&[1]), served(&[9])]), Within::default());
    }

    #[test]
    fn shares_are_parts_of_an_equal_one() {
        let all = served(&[6, 1, 1]);
        assert_eq!(
            (share(&all[..1], &all), share(&all[1..], &all)),
            (Some(2.25), Some(0.375))
        );
        assert_eq!(share(&served(&[0]), &served(&[0])), None);
    }
}
