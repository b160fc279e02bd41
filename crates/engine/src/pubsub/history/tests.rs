use super::*;
use crate::support::eventually;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

const KEPT: Kept = Kept {
    messages: 100,
    time: Duration::from_secs(300),
};

fn words(count: usize) -> &'static [AtomicU64] {
    Box::leak((0..count).map(|_| AtomicU64::new(0)).collect())
}

fn history(count: usize) -> History {
    History::create(words(count), None).expect("a history")
}

fn append(history: &History, channel: &str, message: &str) -> u64 {
    let appended = history.append(channel.as_bytes(), message.as_bytes(), u64::MAX);
    appended.expect("nobody else appends").0
}

fn texts(since: Since) -> Option<Vec<String>> {
    match since {
        Since::All(past) => Some(
            past.iter()
                .map(|past| String::from_utf8_lossy(&past.message).into())
                .collect(),
        ),
        Since::Lost => None,
    }
}

#[test]
fn the_messages_of_a_channel_after_a_position_are_found_in_order() {
    let history = history(10_000);
    append(&history, "a", "before");
    let position = history.position();
    for number in 0..5 {
        append(&history, "a", &format!("a{number}"));
        append(&history, "b", &format!("b{number}"));
    }
    assert_eq!(
        texts(history.since(b"a", position, KEPT)),
        Some(vec!["a0".into(), "a1".into(), "a2".into(), "a3".into(), "a4".into()])
    );
    assert_eq!(texts(history.since(b"c", position, KEPT)), Some(vec![]));
    assert_eq!(texts(history.since(b"a", history.position(), KEPT)), Some(vec![]));
    let past = history.since_time(b"b", Duration::ZERO, KEPT);
    assert_eq!(past.len(), 5);
    assert!(past[0].time > Duration::from_secs(1_700_000_000), "{past:?}");
    assert!(history
        .since_time(b"b", past[4].time + Duration::from_secs(1), KEPT)
        .is_empty());
}

#[test]
fn a_position_that_is_too_old_or_of_another_server_is_lost() {
    let history = history(10_000);
    let position = history.position();
    (0..3).for_each(|_| _ = append(&history, "a", "x"));
    let two = Kept { messages: 2, ..KEPT };
    assert_eq!(texts(history.since(b"a", position, two)), None);
    assert_eq!(texts(history.since(b"other", position, two)), Some(vec![]));
    let later = Position {
        offset: position.offset + 1,
        ..position
    };
    assert_eq!(texts(history.since(b"a", later, two)).map(|texts| texts.len()), Some(2));
    let short = Kept {
        time: Duration::ZERO,
        ..KEPT
    };
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(texts(history.since(b"a", position, short)), None);
    for wrong in [
        Position {
            epoch: position.epoch + 1,
            ..position
        },
        Position { offset: 4, ..position },
    ] {
        assert_eq!(texts(history.since(b"a", wrong, KEPT)), None);
    }
}

#[test]
fn the_position_before_a_moment_says_if_later_messages_are_kept() {
    let history = history(2_000);
    let position = history.position();
    assert_eq!(history.before(b"a", Duration::ZERO, KEPT), (position, true));
    (0..3).for_each(|_| _ = append(&history, "a", "x"));
    let at = |offset| Position { offset, ..position };
    let two = Kept { messages: 2, ..KEPT };
    assert_eq!(history.before(b"a", Duration::ZERO, KEPT), (at(0), true));
    assert_eq!(history.before(b"a", Duration::ZERO, two), (at(1), false));
    assert_eq!(history.before(b"a", Duration::from_secs(1 << 40), two), (at(3), true));
    std::thread::sleep(Duration::from_millis(3));
    let later = Nanos::now().since_epoch();
    // Other channels overwrite those messages, and take their place in the table.
    for number in 0..400 {
        append(&history, &format!("{}", number % 60), "x");
    }
    for channel in [&b"a"[..], b"new"] {
        assert!(!history.before(channel, Duration::ZERO, KEPT).1);
    }
    append(&history, "a", "y");
    assert_eq!(
        history.before(b"a", later + Duration::from_secs(60), KEPT),
        (at(404), true)
    );
}

#[test]
fn messages_up_to_an_offset() {
    let history = history(10_000);
    let position = history.position();
    (0..4).for_each(|number| _ = append(&history, "a", &number.to_string()));
    let between = |first, last| {
        let first = Position {
            offset: first,
            ..position
        };
        texts(history.between(b"a", first, last, KEPT))
    };
    assert_eq!(between(1, 3), Some(vec!["1".into(), "2".into()]));
    assert_eq!(between(3, 3), Some(vec![]));
}

#[test]
fn a_message_that_is_too_long_leaves_a_gap() {
    let history = history(10_000);
    let position = history.position();
    let long = vec![b'x'; 10_000 * 8 / 8];
    assert_eq!(history.append(b"a", &long, u64::MAX).map(|(_, kept)| kept), Ok(false));
    assert_eq!(texts(history.since(b"a", position, KEPT)), None);
    let position = history.position();
    append(&history, "a", "after");
    assert_eq!(texts(history.since(b"a", position, KEPT)), Some(vec!["after".into()]));
}

#[test]
fn an_overwritten_message_is_lost_and_never_garbage() {
    let history = history(2_000);
    let mut positions = HashMap::new();
    for number in 0..2_000 {
        let channel = format!("channel {}", number % 7);
        let before = history.position();
        append(&history, &channel, &format!("{number} {}", "x".repeat(number % 50)));
        positions.insert(channel, (number, before));
    }
    for (channel, (number, before)) in positions {
        let found = texts(history.since(channel.as_bytes(), before, KEPT)).expect("the newest");
        assert!(
            found.len() == 1 && found[0].starts_with(&format!("{number} ")),
            "{found:?}"
        );
        let long_ago = Position { offset: 0, ..before };
        assert_eq!(texts(history.since(channel.as_bytes(), long_ago, KEPT)), None);
    }
}

#[test]
fn a_channel_that_the_table_has_given_up_counts_as_lost() {
    let history = history(2_000);
    let first = history.position();
    append(&history, "first", "x");
    for number in 0..200 {
        append(&history, &number.to_string(), "x");
    }
    assert_eq!(texts(history.since(b"first", first, KEPT)), None);
    assert_eq!(texts(history.since(b"first", history.position(), KEPT)), Some(vec![]));
}

#[test]
fn a_channel_that_comes_back_does_not_look_complete() {
    let history = history(200_000);
    let first = history.position();
    append(&history, "first", "1");
    (0..15_000).for_each(|number| _ = append(&history, &number.to_string(), "x"));
    append(&history, "first", "2");
    assert_eq!(texts(history.since(b"first", first, KEPT)), None);
    append(&history, "first", "3");
    let recent = history.position();
    append(&history, "first", "4");
    assert_eq!(texts(history.since(b"first", recent, KEPT)), Some(vec!["4".into()]));
}

#[test]
fn a_reader_sees_all_messages_and_stops_the_writer_before_it_overwrites_them() {
    let history = history(2_000);
    let mut place = history.end();
    let mut appended = 0;
    while history.append(b"a", &[b'x'; 100], place).is_ok() {
        appended += 1;
    }
    assert!(appended > 50, "{appended}");
    assert_eq!(history.append(b"a", &[b'x'; 100], place), Err(NotAppended::Full));
    let mut offsets = Vec::new();
    loop {
        match history.next(&mut place, |_| true) {
            Next::Message(publication) => offsets.extend(publication.position.map(|position| position.offset)),
            Next::Nothing => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(offsets, (1..=appended).collect::<Vec<_>>());
    let mut slow = place;
    (0..1_000).for_each(|_| _ = append(&history, "a", "y"));
    assert!(matches!(history.next(&mut slow, |_| true), Next::Overrun));
    assert!(matches!(history.next(&mut slow, |_| true), Next::Message(_)));
    assert!(matches!(history.next(&mut slow, |_| false), Next::Unwanted));
}

#[test]
fn only_a_sealed_position_of_the_same_channel_is_opened() {
    let history = history(10_000);
    append(&history, "a", "x");
    let sealed = history.seal(b"a", history.position()).expect("randomness");
    let opened = history.open(b"a", &sealed).expect("valid");
    assert_eq!(opened.position, history.position());
    assert_ne!(
        history.seal(b"a", history.position()).ok(),
        Some(sealed.clone()),
        "each page has a number"
    );
    assert_eq!(history.open(b"b", &sealed), None);
    for at in 0..sealed.len() {
        let mut forged = sealed.clone().into_bytes();
        forged[at] = if forged[at] == b'1' { b'2' } else { b'1' };
        let forged = String::from_utf8(forged).expect("ASCII");
        assert_eq!(history.open(b"a", &forged), None, "{forged}");
    }
    assert_eq!(self::history(10_000).open(b"a", &sealed), None, "of another server");
}

#[test]
fn a_page_resumes_after_its_messages_or_is_forgotten() {
    let history = history(2_000);
    let page = |number: u64, made: Millis, history: &History| PagePosition {
        position: history.position(),
        page: number,
        made: made.to_number(),
    };
    let now = Millis::now();
    let old = page(
        7,
        Millis::from_number(now.to_number().saturating_sub(100_000)),
        &history,
    );
    assert_eq!(history.resume(old), None, "not young, and not known");
    (0..3).for_each(|_| _ = append(&history, "a", "x"));
    history.received(7, 2);
    history.received(7, 1);
    history.received(8, 3);
    assert_eq!(history.resume(old).map(|position| position.offset), Some(2));
    std::thread::sleep(Duration::from_millis(2));
    for number in 100..400 {
        append(&history, "a", "x");
        let young = page(number, Millis::now(), &history);
        append(&history, "b", "x");
        assert_eq!(history.resume(young), Some(young.position), "however many there are");
    }
    assert_eq!(history.resume(old), None);
}

#[test]
fn a_channel_with_a_name_longer_than_the_ring_is_not_kept() {
    let history = history(2_000);
    for bytes in [3_000, 20_000] {
        let name = vec![b'x'; bytes];
        assert_eq!(history.append(&name, b"1", u64::MAX).map(|(_, kept)| kept), Ok(false));
    }
    append(&history, "a", "2");
    assert_eq!(history.position().offset, 1);
}

#[test]
fn the_next_writer_finishes_the_entry_of_a_process_that_has_died() {
    let history = history(10_000);
    append(&history, "a", "1");
    let position = history.position();
    let header = history.layout.header();
    let before = (header.finished.load(Relaxed), header.offset.load(Relaxed));
    let Newest::At(place, offset) = history.table().newest(history.table().hash(b"a")) else {
        panic!("an entry")
    };
    append(&history, "a", "2");
    // The steps after the store of the tail are undone, as if they had never happened.
    history.table().put(history.table().hash(b"a"), place, offset, 0);
    header.finished.store(before.0, Relaxed);
    header.offset.store(before.1, Relaxed);
    assert_eq!(texts(history.since(b"a", position, KEPT)), Some(vec!["2".into()]));
    assert_eq!(history.position().offset, 2, "others have read the message");
    append(&history, "b", "3");
    assert_eq!(texts(history.since(b"a", position, KEPT)), Some(vec!["2".into()]));
    assert_eq!(history.position().offset, 3);
}

#[test]
fn a_channel_whose_place_in_the_table_is_being_taken_is_forgotten() {
    let history = history(10_000);
    let position = history.position();
    append(&history, "a", "1");
    let header = history.layout.header();
    let finished = header.finished.load(Relaxed);
    append(&history, "b", "2");
    // As if the process that has appended to the other channel had died on the way.
    header.finished.store(finished, Relaxed);
    header.forgotten.store(1, Relaxed);
    let hash = history.table().hash(b"a");
    let mut slots = history.layout.bucket(hash).chunks_exact(layout::SLOT);
    let slot = slots.find(|slot| slot[0].load(Relaxed) == hash).expect("an entry");
    slot[1].store(0, Relaxed);
    assert_eq!(texts(history.since(b"a", position, KEPT)), None);
    assert_eq!(texts(history.since(b"a", history.position(), KEPT)), Some(vec![]));
}

#[test]
fn a_reader_misses_no_message_while_others_are_appended() {
    let history: &'static History = Box::leak(Box::new(history(1_000_000)));
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let writer = std::thread::spawn(move || {
        while !stop.load(Relaxed) {
            append(history, "a", "x");
        }
    });
    eventually("a message", || history.position().offset > 0);
    let mut found = 0;
    for _ in 0..100_000 {
        let position = history.position();
        let before = Position {
            offset: position.offset - 1,
            ..position
        };
        // A reader that was suspended may be too late.
        if let Since::All(past) = history.since(b"a", before, KEPT) {
            assert_eq!(past.first().map(|past| past.offset), Some(position.offset));
            found += 1;
        }
    }
    stop.store(true, Relaxed);
    writer.join().expect("no panic");
    assert!(found > 0);
}

#[test]
fn readers_beside_writers_get_whole_messages_only() {
    let history: &'static History = Box::leak(Box::new(history(4_000)));
    let stop: &'static AtomicBool = Box::leak(Box::default());
    let writers: Vec<_> = (0..2u8)
        .map(|writer| {
            std::thread::spawn(move || {
                let mut number = 0usize;
                while !stop.load(Relaxed) {
                    let message = vec![b'a' + writer; number % 300];
                    number += usize::from(history.append(&[writer; 5], &message, u64::MAX).is_ok());
                }
            })
        })
        .collect();
    let (mut place, mut offset, mut seen) = (history.end(), 0, 0);
    while seen < 20_000 {
        match history.next(&mut place, |_| true) {
            Next::Message(publication) => {
                let position = publication.position.expect("kept").offset;
                assert!(position > offset, "{position} after {offset}");
                offset = position;
                let writer = publication.channel[0];
                assert!(*publication.channel == [writer; 5], "{publication:?}");
                assert!(publication.message.iter().all(|byte| *byte == b'a' + writer));
                seen += 1;
            }
            _ => std::thread::yield_now(),
        }
        if seen % 64 == 0 {
            let position = Position {
                offset: offset.saturating_sub(10),
                epoch: history.epoch(),
            };
            if let Since::All(past) = history.since(&[0; 5], position, KEPT) {
                assert!(past.iter().all(|past| past.message.iter().all(|byte| *byte == b'a')));
                assert!(past.windows(2).all(|pair| pair[0].offset < pair[1].offset));
            }
        }
    }
    stop.store(true, Relaxed);
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
}

#[test]
fn memory_of_another_format_is_not_used() {
    let file = || fairlead_system::wake_up::open().expect("a descriptor");
    let words = words(10_000);
    assert!(History::adopt(words, file()).is_err(), "nobody has prepared it");
    History::create(words, None).expect("a history");
    assert!(History::adopt(words, file()).is_ok());
    words[0].fetch_add(1, Relaxed);
    assert!(History::adopt(words, file()).is_err());
}

#[test]
fn one_process_of_two_releases_leads() {
    let history = history(10_000);
    let follow = |process: u32| history.layout.header().leader.store(process.into(), SeqCst);
    history.set_joint(true);
    follow(1);
    assert!(!history.lead(), "process 1 leads");
    history.stop_leading();
    assert!(!history.lead(), "only the leader can stop");
    let mut ended = std::process::Command::new("true").spawn().expect("a process");
    ended.wait().expect("its end");
    follow(ended.id());
    assert!(history.lead() && history.lead());
    history.stop_leading();
    assert!(history.lead(), "there is none");
    follow(1);
    history.set_joint(false);
    assert!(history.lead(), "the leader was of another release");
}
