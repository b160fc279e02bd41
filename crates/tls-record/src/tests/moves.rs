//! Connections that move at random points, between and within records, with key updates of both sides.

use super::pair::{read_by, records_of, Pair, ALL};
use crate::state::Imported;
use crate::{frame, Frame, Records, Version};
use rustls::ClientConnection;
use std::io::{IoSlice, Write};

/// A sequence of numbers that looks random (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// The end of a server, with its received bytes.
struct Server {
    records: Records,
    input: Vec<u8>,
    received: Vec<u8>,
    moves: usize,
}

impl Server {
    fn move_on(&mut self) {
        let state = self.records.export(&self.input, b"extra");
        let Imported { records, input, extra } = Records::import(&state).unwrap();
        assert_eq!(extra, b"extra");
        assert_eq!(*records.export(&input, &extra), *state);
        (self.records, self.input) = (records, input);
        self.moves += 1;
    }

    /// Receives bytes in parts, and moves in between.
    fn receive(&mut self, mut bytes: &[u8], dice: &mut Dice) {
        while !bytes.is_empty() {
            let (part, rest) = bytes.split_at(1 + dice.below(bytes.len()));
            self.input.extend_from_slice(part);
            bytes = rest;
            self.decrypt(dice);
            if dice.below(3) == 0 {
                self.move_on();
            }
        }
    }

    fn decrypt(&mut self, dice: &mut Dice) {
        while let Frame::Whole(length) = frame(&self.input) {
            let mut record: Vec<u8> = self.input.drain(..length).collect();
            let mut space = vec![0; dice.below(20_000)];
            let count = self.records.receive(&mut record, &mut space).unwrap();
            self.received.extend_from_slice(&space[..count]);
            if dice.below(5) == 0 {
                self.move_on();
            }
            let mut rest = vec![0; 20_000];
            let count = self.records.take_held(&mut rest);
            self.received.extend_from_slice(&rest[..count]);
        }
        assert_ne!(frame(&self.input), Frame::Broken(crate::Violation::Empty));
    }

    /// Takes a part of the unsent records.
    fn send(&mut self, dice: &mut Dice) -> Vec<u8> {
        let count = dice.below(self.records.unsent().len() + 1);
        let part = self.records.unsent()[..count].to_vec();
        self.records.note_sent(count);
        part
    }
}

fn exchange(client: &mut ClientConnection, server: &mut Server, dice: &mut Dice, version: Version) {
    let (mut sent, mut expected, mut read) = (Vec::new(), Vec::new(), Vec::new());
    while server.moves < 100 {
        let data = vec![dice.below(256) as u8; dice.below(40_000)];
        match dice.below(4) {
            0 => {
                client.writer().write_all(&data).unwrap();
                sent.extend_from_slice(&data);
            }
            1 => {
                let (one, two) = data.split_at(data.len() / 3);
                let pieces = [IoSlice::new(one), IoSlice::new(&[]), IoSlice::new(two)];
                assert_eq!(server.records.write(&pieces), Ok(data.len()));
                expected.extend_from_slice(&data);
            }
            2 if version == Version::Tls13 => client.refresh_traffic_keys().unwrap(),
            _ => server.records.update_keys(),
        }
        let bytes = records_of(client);
        server.receive(&bytes, dice);
        let bytes = server.send(dice);
        read.extend_from_slice(&read_by(client, &bytes));
    }
    let bytes = server.records.unsent().to_vec();
    read.extend_from_slice(&read_by(client, &bytes));
    server.records.note_sent(bytes.len());
    assert!(read == expected, "{} bytes instead of {}", read.len(), expected.len());
    assert!(
        server.received == sent,
        "{} bytes instead of {}",
        server.received.len(),
        sent.len()
    );
}

#[test]
fn a_connection_moves_a_hundred_times_at_random_points() {
    for (version, suite) in ALL {
        for seed in 1..=3 {
            let (mut client, records) = Pair::new(version, suite).without_rustls();
            assert_eq!((records.version(), records.suite()), (version, suite));
            let mut server = Server {
                records,
                input: Vec::new(),
                received: Vec::new(),
                moves: 0,
            };
            exchange(&mut client, &mut server, &mut Dice(seed), version);
            // Both sides end properly.
            client.send_close_notify();
            let bytes = records_of(&mut client);
            server.receive(&bytes, &mut Dice(seed));
            assert!(server.records.has_ended());
            server.records.close();
            server.move_on();
            let mut bytes = server.records.unsent();
            client.read_tls(&mut bytes).unwrap();
            assert!(client.process_new_packets().unwrap().peer_has_closed());
        }
    }
}
