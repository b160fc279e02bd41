//! How evenly a run served its connections.

/// What one connection got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Requests it wanted to send.
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
}

/// How evenly the answers were spread over the connections that asked for any.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fairness {
    /// Jain's index: (Σx)² / (n Σx²); 1 when all got the same, 1/n when one got everything. `None` without answers.
    pub(crate) jain: Option<f64>,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Numbers (from 1) of the connections that asked and got nothing while others were answered.
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
            never_served: never_served.collect(),
        }
    }

    pub(crate) fn least_to_most(&self) -> Option<f64> {
        (self.most > 0).then(|| self.least as f64 / self.most as f64)
    }
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
            (fairness.least, fairness.most, fairness.least_to_most()),
            (0, 5, Some(0.0))
        );
        assert_eq!(Fairness::of(&served(&[0, 0])).never_served, Vec::<usize>::new());
    }
}
