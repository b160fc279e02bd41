//! Random connections, made of frames of an independent encoder, against its input; and the same with faults, against
//! the model. Deterministic: a failing case prints its seed.

use crate::check;
use crate::http1::Random;
use crate::support::*;
use fairlead_wire::websocket::{Deflater, Limits, Role};
use std::panic::{catch_unwind, resume_unwind, RefUnwindSafe};

const CASES: u64 = 1_000;

/// Runs `case` with every seed and returns the number of true results.
fn count(case: impl Fn(&mut Random) -> bool + RefUnwindSafe) -> u64 {
    let run = |seed| {
        catch_unwind(|| case(&mut Random::new(seed))).unwrap_or_else(|panic| {
            eprintln!("seed {seed}");
            resume_unwind(panic)
        })
    };
    (0..CASES).filter(|&seed| run(seed)).count() as u64
}

/// Writes messages as the peer would, and remembers their meaning.
struct Peer<'a> {
    random: &'a mut Random,
    setup: Setup,
    deflater: Deflater,
    bytes: Vec<u8>,
    meant: Vec<Heard>,
}

impl Peer<'_> {
    fn new(random: &mut Random) -> Peer<'_> {
        let role = [Role::Server, Role::Client][random.below(2)];
        let deflate = [None, Some(ALONE), Some(KEPT)][random.below(3)];
        Peer {
            setup: Setup {
                role,
                deflate,
                ..SERVER
            },
            deflater: Deflater::new(9 + random.below(7) as u8),
            bytes: Vec::new(),
            meant: Vec::new(),
            random,
        }
    }

    fn frame(&mut self, first: u8, payload: &[u8]) {
        let key = [(); 4].map(|()| self.random.below(256) as u8);
        let key = (self.setup.role == Role::Server).then_some(key);
        self.bytes.extend(raw(first, key, payload));
    }

    fn message(&mut self) {
        const WORDS: [&str; 6] = [
            "Hello ",
            "κόσμε",
            "\u{1f600}",
            "\0",
            "a much longer word than the others",
            "{\"a\":1},",
        ];
        let text: String = (0..self.random.below(12)).map(|_| self.random.pick(&WORDS)).collect();
        let (opcode, meant) = match self.random.below(2) {
            0 => (TEXT, Heard::Text(text.clone().into())),
            _ => (BINARY, Heard::Binary(text.clone().into())),
        };
        let mut payload = text.into_bytes();
        let mut first = opcode;
        if let Some(deflate) = self.setup.deflate.filter(|_| self.random.below(3) > 0) {
            let mut compressed = Vec::new();
            self.deflater
                .message(&payload, !deflate.client_no_context, &mut compressed);
            payload = compressed;
            first |= RSV1;
        }
        while self.random.below(3) > 0 {
            let (fragment, rest) = payload.split_at(self.random.below(payload.len() + 1));
            let (fragment, rest) = (fragment.to_vec(), rest.to_vec());
            self.frame(first, &fragment);
            (first, payload) = (CONTINUATION, rest);
            self.control();
        }
        self.frame(FIN | first, &payload);
        self.meant.push(meant);
    }

    fn control(&mut self) {
        let payload = vec![b'x'; self.random.below(126)];
        match self.random.below(4) {
            0 => {
                self.frame(FIN | PING, &payload);
                self.meant.push(Heard::Ping(payload));
            }
            1 => {
                self.frame(FIN | PONG, &payload);
                self.meant.push(Heard::Pong(payload));
            }
            _ => {}
        }
    }
}

fn sizes(random: &mut Random) -> [usize; 4] {
    [(); 4].map(|()| 1 + random.below(40))
}

#[test]
fn what_a_peer_says_is_heard() {
    count(|random| {
        let mut peer = Peer::new(random);
        for _ in 0..peer.random.below(5) {
            peer.message();
            peer.control();
        }
        let Peer {
            setup, bytes, meant, ..
        } = peer;
        assert_eq!(check::connection(&bytes, &setup, &sizes(random)), (meant, Ok(())));
        true
    });
}

#[test]
fn faults_are_what_the_model_says() {
    let sound = count(|random| {
        let mut peer = Peer::new(random);
        for _ in 0..1 + peer.random.below(3) {
            peer.message();
        }
        let Peer {
            mut setup, mut bytes, ..
        } = peer;
        setup.limits = Limits {
            message_bytes: 20 + random.below(400),
            fragments: 1 + random.below(8),
        };
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            let bit = 1 << random.below(8);
            match random.below(3) {
                0 => bytes[at] ^= bit,
                1 => bytes.insert(at, bit),
                _ => bytes.truncate(at + 1),
            }
        }
        let sizes = sizes(random);
        check::connection(&bytes, &setup, &sizes).1.is_ok()
    });
    assert!((CASES / 5..CASES * 4 / 5).contains(&sound), "{sound} of {CASES} sound");
}
