//! Tests of the schedule with made-up results.

use super::*;
use crate::acme::message::{Certificate, Facts};
use crate::acme::{Failure, Wall, HOUR};

const START: Wall = 1_800_000_000_000;
const SECOND: Wall = 1000;
const DAY: Wall = 24 * HOUR;
const DIRECTORY: &str = "https://ca.example/directory";

/// A schedule, its clock, and the tasks without a result.
struct World {
    renewals: Renewals,
    wall: Wall,
    running: Duration,
    asked: Vec<(u64, String, Task, Wish, Text)>,
    lines: Vec<Line>,
    reloads: usize,
}

impl World {
    /// A world with orders for these hosts.
    fn new(hosts: &[&str]) -> World {
        let mut world = World {
            renewals: Renewals::default(),
            wall: START,
            running: Duration::ZERO,
            asked: Vec::new(),
            lines: Vec::new(),
            reloads: 0,
        };
        world.adopt(hosts);
        world
    }

    fn adopt(&mut self, hosts: &[&str]) {
        let orders = hosts.iter().map(|host| OrderSettings {
            key: (*host).into(),
            hosts: vec![(*host).into()],
            directory: DIRECTORY.into(),
            authority: "ca.example".into(),
        });
        let (folder, orders) = ("/state".into(), orders.collect());
        self.step(Event::Orders(Orders { folder, orders }));
    }

    fn step(&mut self, event: Event) {
        let now = Now {
            wall: self.wall,
            running: self.running,
            random: 0.5,
        };
        for action in self.renewals.step(now, event) {
            match action {
                Action::Ask {
                    number,
                    key,
                    task,
                    wish,
                    text,
                } => self.asked.push((number, key, task, wish, text)),
                Action::Reload => self.reloads += 1,
                Action::Log(line) => self.lines.push(line),
            }
        }
    }

    /// Time passes, both by the clock and for the server.
    fn pass(&mut self, seconds: u64) {
        self.wall += seconds as Wall * SECOND;
        self.running += Duration::from_secs(seconds);
        self.step(Event::Tick { serves: true });
    }

    /// The tasks of a kind without a result, by their orders.
    fn waiting(&self, task: Task) -> Vec<&str> {
        let waiting = self.asked.iter().filter(|one| one.2 == task);
        waiting.map(|one| one.1.as_str()).collect()
    }

    /// Takes the first task of a kind.
    fn taken(&mut self, task: Task) -> (u64, Wish, Text) {
        let index = self.asked.iter().position(|one| one.2 == task).expect("such a task");
        let (number, _, _, wish, text) = self.asked.remove(index);
        (number, wish, text)
    }

    /// Gives a result to the first task of a kind.
    fn answer(&mut self, task: Task, answer: Answer) -> Wish {
        let (number, wish, _) = self.taken(task);
        self.step(Event::Answered(number, Box::new(answer)));
        wish
    }

    /// Gives a result to all checks: the state is unchanged, or there are no files.
    fn answer_looks(&mut self) {
        while !self.waiting(Task::Look).is_empty() {
            let (number, wish, _) = self.taken(Task::Look);
            let facts = wish.token.is_none().then(|| nothing("0"));
            let answer = Answer {
                facts,
                ..Answer::default()
            };
            self.step(Event::Answered(number, Box::new(answer)));
        }
    }

    /// A second passes, and the checks find nothing new.
    fn look(&mut self) {
        self.pass(1);
        self.answer_looks();
    }

    /// The first check finds this state.
    fn begin_with(&mut self, facts: Facts) {
        self.pass(1);
        self.answer(Task::Look, told(facts));
    }

    fn order_fails(&mut self) {
        self.answer(Task::Order, failed("refused"));
        self.answer_looks();
    }

    fn report(&self, index: usize) -> OrderReport {
        self.renewals.report().remove(index)
    }

    fn events(&self) -> Vec<&str> {
        self.lines.iter().map(|line| line.event).collect()
    }
}

fn told(facts: Facts) -> Answer {
    Answer {
        facts: Some(facts),
        ..Answer::default()
    }
}

fn failed(message: &str) -> Answer {
    Answer {
        outcome: Some(Outcome::Failed {
            message: message.into(),
            retry_after: None,
        }),
        ..Answer::default()
    }
}

fn busy() -> Answer {
    Answer {
        outcome: Some(Outcome::Busy),
        ..Answer::default()
    }
}

/// Files without a certificate or a failure.
fn nothing(token: &str) -> Facts {
    Facts {
        token: token.into(),
        forgiven: true,
        ..Facts::default()
    }
}

/// Files with a certificate of this validity.
fn good(token: &str, begins_at: Wall, expires_at: Wall) -> Facts {
    let life = expires_at - begins_at;
    Facts {
        certificate: Some(Certificate {
            begins_at,
            expires_at,
            renew_at: begins_at + life * 2 / 3,
            fraction: 0.5,
            identifier: Some(format!("authority.{token}")),
        }),
        account: true,
        ..nothing(token)
    }
}

fn issued(facts: Facts) -> Answer {
    Answer {
        outcome: Some(Outcome::Issued),
        ..told(facts)
    }
}

#[test]
fn nothing_is_done_before_somebody_serves() {
    let mut world = World::new(&["a"]);
    world.step(Event::Tick { serves: false });
    assert!(world.asked.is_empty());
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn what_was_never_ordered_is_due_at_once_and_a_new_certificate_is_shown() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    assert_eq!(world.report(0).next_attempt_at, "1970-01-01T00:00:00.000Z");
    world.answer(Task::Order, issued(good("2", START, START + 90 * DAY)));
    assert_eq!((world.reloads, world.events()), (1, vec!["acme_present"]));
    assert_eq!(
        world.lines[0].text,
        "acme: the certificate for a is valid until 2027-04-15 08:00:00 UTC; it is renewed from 2027-03-16 08:00:00 UTC on"
    );
    let (_, wish, _) = world.taken(Task::Look);
    assert!(wish.forget, "the file of a failure is deleted");
    assert_eq!(world.report(0).expires_at.as_deref(), Some("2027-04-15T08:00:00.000Z"));
    assert_eq!(world.report(0).next_attempt_at, "2027-03-16T08:00:00.000Z");
}

#[test]
fn a_certificate_is_renewed_when_it_is_due() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START, START + 30 * 60 * SECOND));
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    world.pass(20 * 60 - 2);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    world.pass(2);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn a_failure_is_written_told_and_not_repeated_at_once() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    world.answer(Task::Order, failed("refused"));
    let at = world.wall + 60 * SECOND;
    let (number, wish, _) = world.taken(Task::Look);
    let failure = wish.fail.expect("a failure to write");
    assert_eq!((failure.count, failure.retry_at), (1, at));
    assert_eq!(world.events(), ["acme_failed"]);
    assert!(world.lines[0]
        .text
        .ends_with("refused; next attempt at 2027-01-15 08:01:01 UTC; no certificate is in use"));
    let kept = Facts {
        failure: Some(failure),
        ..nothing("2")
    };
    world.step(Event::Answered(number, Box::new(told(kept))));
    for _ in 0..58 {
        world.pass(1);
        assert_eq!(world.answer(Task::Look, Answer::default()).fail, None);
    }
    let report = world.report(0);
    assert_eq!((report.failures, report.error.as_deref()), (1, Some("refused")));
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    world.pass(2);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn the_pauses_grow() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    let mut attempts = 0;
    for _ in 0..600 {
        while !world.waiting(Task::Order).is_empty() {
            attempts += 1;
            world.order_fails();
        }
        world.look();
    }
    assert_eq!(attempts, 4);
}

#[test]
fn the_pauses_grow_while_every_new_certificate_is_due_at_once() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("0"));
    let mut attempts = 0;
    for _ in 0..600 {
        while !world.waiting(Task::Order).is_empty() {
            attempts += 1;
            let late = Facts {
                forgiven: false,
                ..good(&attempts.to_string(), world.wall - 89 * DAY, world.wall + DAY)
            };
            world.answer(Task::Order, issued(late));
            world.answer_looks();
        }
        world.look();
    }
    assert_eq!((attempts, world.reloads), (4, 4));
    let error = world.report(0).error.expect("an error");
    assert!(
        error.contains("is due for renewal at once: the clock of this machine"),
        "{error}"
    );
    assert!(world.report(0).expires_at.is_some());
}

#[test]
fn a_kept_failure_counts_at_a_start_and_its_file_can_be_deleted() {
    let mut world = World::new(&["a"]);
    let kept = Facts {
        failure: Some(Failure {
            count: 3,
            reason: "refused".into(),
            retry_at: START + HOUR,
        }),
        forgiven: false,
        ..nothing("1")
    };
    world.begin_with(kept);
    assert_eq!(
        world.lines[0].text,
        "acme: the next attempt to get a certificate for a is at 2027-01-15 09:00:00 UTC, failed attempts: 3: refused; \
         no certificate is in use"
    );
    // The folder is gone, or the file is damaged: this does not delete the failure.
    world.pass(1);
    world.answer(
        Task::Look,
        told(Facts {
            forgiven: false,
            ..nothing("2")
        }),
    );
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    world.pass(1);
    world.answer(Task::Look, told(nothing("3")));
    assert_eq!(world.waiting(Task::Order), ["a"]);
    assert_eq!(world.report(0).failures, 0);
}

#[test]
fn a_failure_that_cannot_be_written_stays_and_is_told() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    world.answer(Task::Order, failed("refused"));
    let unwritten = Answer {
        unwritten: Some("no space".into()),
        ..Answer::default()
    };
    world.answer(Task::Look, unwritten);
    assert_eq!(world.events(), ["acme_failed", "acme_failure_unwritten"]);
    world.pass(1);
    world.answer(Task::Look, told(nothing("2")));
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    assert_eq!(world.report(0).failures, 1);
}

#[test]
fn a_later_failure_of_another_process_counts() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    world.order_fails();
    let other = Failure {
        count: 7,
        reason: "theirs".into(),
        retry_at: world.wall + HOUR,
    };
    let facts = Facts {
        failure: Some(other),
        ..nothing("2")
    };
    world.pass(1);
    world.answer(Task::Look, told(facts));
    assert_eq!(world.report(0).error.as_deref(), Some("theirs"));
}

#[test]
fn a_clock_that_is_set_back_puts_nothing_off() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    world.order_fails();
    world.wall -= 30 * 365 * DAY;
    world.look();
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    assert_eq!(world.report(0).next_attempt_at, date::wall(world.wall + 6 * HOUR));
}

#[test]
fn a_certificate_whose_file_is_lost_stays_and_is_written_again() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START, START + 90 * DAY));
    world.pass(1);
    world.answer(Task::Look, told(nothing("2")));
    for _ in 0..9 {
        world.pass(1);
        assert!(!world.answer(Task::Look, Answer::default()).restore);
    }
    assert!(world.report(0).expires_at.is_some());
    world.pass(1);
    let (number, wish, text) = world.taken(Task::Look);
    assert_eq!((wish.restore, text), (true, Text::Used));
    let written = Answer {
        restore: Some(Restored::Written),
        ..told(good("3", START, START + 90 * DAY))
    };
    world.step(Event::Answered(number, Box::new(written)));
    assert_eq!((world.reloads, world.events().last()), (1, Some(&"acme_restored")));
    world.pass(30);
    assert!(!world.answer(Task::Look, Answer::default()).restore);
    assert_eq!(world.waiting(Task::Order), [""; 0]);
}

#[test]
fn a_file_that_cannot_be_written_again_is_told_of_once_and_tried_every_minute() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START, START + 90 * DAY));
    world.pass(1);
    world.answer(Task::Look, told(nothing("2")));
    let mut tried = 0;
    for _ in 0..200 {
        world.pass(1);
        let (number, wish, _) = world.taken(Task::Look);
        let restore = wish.restore.then(|| Restored::Failed("it is a folder".into()));
        tried += usize::from(wish.restore);
        let answer = Answer {
            restore,
            ..Answer::default()
        };
        world.step(Event::Answered(number, Box::new(answer)));
    }
    assert_eq!(tried, 4);
    assert_eq!(world.events(), ["acme_present", "acme_not_restored"]);
}

#[test]
fn a_lost_file_waits_for_another_process_that_orders() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START, START + 90 * DAY));
    world.pass(1);
    world.answer(Task::Look, told(nothing("2")));
    world.pass(10);
    let locked = Answer {
        restore: Some(Restored::Locked),
        ..Answer::default()
    };
    assert!(world.answer(Task::Look, locked).restore);
    world.pass(9);
    assert!(!world.answer(Task::Look, Answer::default()).restore);
    world.pass(1);
    assert!(world.answer(Task::Look, Answer::default()).restore);
}

#[test]
fn a_certificate_that_could_not_be_written_is_written_later_and_not_ordered_again() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    let unwritten = Answer {
        held: true,
        ..failed("no space")
    };
    world.answer(Task::Order, unwritten);
    world.answer_looks();
    world.pass(61);
    world.answer_looks();
    let (number, wish, text) = world.taken(Task::Order);
    assert_eq!((wish.held, text), (true, Text::Held));
    world.step(Event::Answered(
        number,
        Box::new(issued(good("2", START, START + 90 * DAY))),
    ));
    assert_eq!(world.report(0).error, None);
}

#[test]
fn an_authority_without_an_account_gets_one_order_at_a_time_and_others_four() {
    let mut world = World::new(&["a", "b", "c", "d", "e", "f"]);
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"]);
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"]);
    world.answer(Task::Order, issued(good("2", START, START + 90 * DAY)));
    world.answer_looks();
    world.look();
    assert_eq!(world.waiting(Task::Order), ["b", "c", "d", "e"]);
}

#[test]
fn an_order_that_hangs_holds_up_no_other_and_has_failed_after_its_time() {
    let mut world = World::new(&["a", "b"]);
    let with_account = Facts {
        account: true,
        ..nothing("1")
    };
    world.begin_with(with_account);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["a", "b"]);
    let (hanging, ..) = world.taken(Task::Order);
    world.answer(Task::Order, issued(good("2", START, START + 90 * DAY)));
    for _ in 0..719 {
        world.look();
    }
    assert_eq!(world.report(0).failures, 0);
    world.look();
    assert_eq!(
        world.report(0).error.as_deref(),
        Some("the process that orders it has not responded within 720 s")
    );
    world.step(Event::Answered(
        hanging,
        Box::new(issued(good("3", START, START + 90 * DAY))),
    ));
    assert_eq!(world.report(0).failures, 1, "the result comes too late");
    world.pass(61);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn orders_that_have_failed_least_are_the_first() {
    let mut world = World::new(&["a", "b"]);
    world.look();
    world.order_fails();
    assert_eq!(world.waiting(Task::Order), ["b"]);
    world.answer(Task::Order, busy());
    world.pass(120);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["b"]);
}

#[test]
fn a_disk_that_hangs_at_one_order_stops_no_other() {
    let mut world = World::new(&["a", "b"]);
    world.pass(1);
    let (hanging, ..) = world.taken(Task::Look);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    world.pass(5);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["b"]);
    world.pass(55);
    world.step(Event::Answered(hanging, Box::default()));
    assert_eq!(world.waiting(Task::Look), ["a"], "its files are checked again");
}

#[test]
fn what_another_process_orders_is_waited_for_and_told_of_once() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    for _ in 0..3 {
        world.answer(Task::Order, busy());
        world.answer_looks();
        assert_eq!(world.report(0).error.as_deref(), Some(BUSY));
        world.pass(9);
        world.answer_looks();
        assert_eq!(world.waiting(Task::Order), [""; 0]);
        world.pass(1);
        world.answer_looks();
    }
    assert_eq!(world.events(), ["acme_busy"]);
    assert_eq!(
        world.lines[0].text,
        "acme: another process has locked the order for a in /state/locks; waiting until it has finished or ended"
    );
    world.wall -= DAY;
    world.answer(Task::Order, busy());
    world.wall -= DAY;
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"], "the clock was set back");
}

#[test]
fn a_process_that_was_lost_has_failed_and_one_that_was_to_end_has_not() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    let (number, ..) = world.taken(Task::Order);
    world.step(Event::Lost { number, planned: true });
    assert_eq!((world.report(0).failures, world.events().len()), (0, 0));
    world.look();
    let (number, ..) = world.taken(Task::Order);
    world.step(Event::Lost { number, planned: false });
    assert_eq!(
        world.report(0).error.as_deref(),
        Some("the process that ordered it has ended")
    );
    assert!(world.answer(Task::Look, Answer::default()).fail.is_some());
    world.pass(61);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn a_task_that_was_not_taken_is_not_asked_for_again_at_once() {
    let mut world = World::new(&["a"]);
    world.pass(1);
    let (number, ..) = world.taken(Task::Look);
    world.step(Event::Lost { number, planned: true });
    assert!(world.asked.is_empty());
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn an_order_goes_on_in_the_former_generation_and_is_not_placed_twice() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START - 80 * DAY, START + 10 * DAY));
    assert_eq!(world.waiting(Task::Order), ["a"]);
    world.adopt(&["b", "a"]);
    world.look();
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a", "b"]);
    world.answer(Task::Order, issued(good("2", START, START + 90 * DAY)));
    let renewed = world.report(1).expires_at;
    assert_eq!(renewed, Some(date::wall(START + 90 * DAY)), "the result still counts");
    world.look();
    assert_eq!(world.waiting(Task::Order), ["b"]);
    world.adopt(&["a"]);
    assert_eq!(world.renewals.keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn each_generation_tells_of_its_certificates() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START, START + 90 * DAY));
    world.adopt(&["a"]);
    world.look();
    world.look();
    assert_eq!(world.events(), ["acme_present", "acme_present"]);
}

#[test]
fn a_folder_that_cannot_be_used_is_told_once_and_tried_again() {
    let mut world = World::new(&["a"]);
    let unusable = || Answer {
        unusable: Some("acme_dir: nothing can be kept in /state: it is a file".into()),
        ..Answer::default()
    };
    for _ in 0..3 {
        world.pass(1);
        world.answer(Task::Look, unusable());
    }
    assert_eq!(world.waiting(Task::Order), [""; 0]);
    assert_eq!(world.events(), ["acme_dir_unusable"]);
    assert!(world.report(0).error.expect("an error").contains("it is a file"));
    world.adopt(&["a"]);
    world.pass(1);
    world.answer(Task::Look, unusable());
    assert_eq!(world.events().len(), 2, "each generation logs it");
    world.look();
    assert_eq!(world.waiting(Task::Order), ["a"]);
}

#[test]
fn an_authority_is_asked_and_decides_when_a_certificate_is_renewed() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START - DAY, START + 89 * DAY));
    world.pass(60);
    world.answer_looks();
    let window = [START as f64 / 1000.0 + 100.0, START as f64 / 1000.0 + 300.0, 3600.0];
    let answer = Answer {
        window: Some(window),
        ..Answer::default()
    };
    world.answer(Task::Ask, answer);
    assert_eq!(
        world.lines[1].text,
        "acme: ca.example asks to renew the certificate for a at 2027-01-15 08:03:20 UTC"
    );
    world.pass(120);
    world.answer_looks();
    world.pass(30);
    world.answer_looks();
    let (number, wish, _) = world.taken(Task::Order);
    assert!(wish.recalled);
    world.step(Event::Answered(
        number,
        Box::new(issued(good("2", START, START + 90 * DAY))),
    ));
    assert_eq!(
        world.report(0).next_attempt_at,
        date::wall(START + 60 * DAY),
        "the suggestion was for the previous one"
    );
}

#[test]
fn a_question_without_an_answer_is_asked_again_a_day_later() {
    let mut world = World::new(&["a"]);
    world.begin_with(good("1", START - DAY, START + 89 * DAY));
    world.pass(60);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Ask), ["a"]);
    world.pass(120);
    world.answer_looks();
    world.look();
    assert_eq!(
        world.waiting(Task::Ask),
        ["a"],
        "it was given up, and is not asked again at once"
    );
    world.pass(86_400);
    world.answer_looks();
    assert_eq!(world.waiting(Task::Ask), ["a", "a"]);
}

#[test]
fn nothing_is_ordered_as_long_as_the_files_are_unknown() {
    let mut world = World::new(&["a"]);
    world.pass(1);
    world.answer(Task::Look, Answer::default());
    assert_eq!(world.waiting(Task::Order), [""; 0]);
}

#[test]
fn an_answer_that_says_nothing_about_an_order_is_a_failure() {
    let mut world = World::new(&["a"]);
    world.begin_with(nothing("1"));
    world.answer(Task::Order, Answer::default());
    assert_eq!(world.report(0).failures, 1);
}

#[test]
fn another_program_goes_on_with_the_schedule() {
    let mut world = World::new(&["a", "b"]);
    world.begin_with(good("1", START - DAY, START + 89 * DAY));
    world.answer(Task::Look, told(nothing("0")));
    world.order_fails();
    world.pass(60);
    world.answer_looks();
    let before: Vec<String> = [0, 1].map(|index| world.report(index).next_attempt_at).into();
    let (question, ..) = world.taken(Task::Ask);
    let (order, ..) = world.taken(Task::Order);

    let saved = serde_json::to_string(&world.renewals).expect("JSON");
    world.renewals = serde_json::from_str(&saved).expect("a schedule");
    world.running = Duration::ZERO;
    world.renewals.resume(world.running);

    let after: Vec<String> = [0, 1].map(|index| world.report(index).next_attempt_at).into();
    assert_eq!((after, world.report(1).failures), (before, 1));
    world.step(Event::Lost {
        number: question,
        planned: true,
    });
    world.pass(700);
    assert_eq!(
        world.waiting(Task::Look),
        ["a"],
        "the order of b has all of its time again"
    );
    let look = world.asked.first().map(|asked| asked.0);
    assert!(look > Some(order.max(question)), "numbers are never used twice");
    world.step(Event::Answered(order, Box::new(failed("refused again"))));
    assert_eq!(world.report(1).failures, 2);
}
