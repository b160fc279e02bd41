//! DEFLATE (RFC 1951) bit by bit: slow, plain, and written independently of the tested library. It reads the whole
//! stream from its start each time.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Reason for the end of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The input has ended, either between blocks or within one.
    Input,
    /// The input is no valid DEFLATE stream from here on.
    Broken,
}

/// The content of a stream.
pub(crate) struct Inflated {
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: End,
    /// The input ends exactly with a last block.
    pub(crate) complete: bool,
}

/// The content of `stream`. After a last block another stream begins with the next byte, and with no history.
pub(crate) fn inflate(stream: &[u8]) -> Inflated {
    let mut reader = Reader {
        stream,
        position: 0,
        out: Vec::new(),
        start: Start { input: 0, output: 0 },
    };
    let end = loop {
        if let Err(end) = reader.block() {
            break end;
        }
    };
    Inflated {
        bytes: reader.out,
        end,
        complete: !stream.is_empty() && reader.start.input == 8 * stream.len(),
    }
}

struct Reader<'a> {
    stream: &'a [u8],
    /// In bits.
    position: usize,
    out: Vec<u8>,
    start: Start,
}

/// The start of the current one of several streams.
struct Start {
    input: usize,
    output: usize,
}

/// A canonical code (RFC 1951 §3.2.2).
struct Codes {
    /// Symbols by the length and the bits of their codes.
    symbols: HashMap<(usize, usize), usize>,
    longest: usize,
}

impl Reader<'_> {
    fn bits(&mut self, count: usize) -> Result<usize, End> {
        if self.position + count > 8 * self.stream.len() {
            return Err(End::Input);
        }
        let bit = |at: usize| usize::from(self.stream[at / 8] >> (at % 8) & 1);
        let value = (0..count).map(|at| bit(self.position + at) << at).sum();
        self.position += count;
        Ok(value)
    }

    fn block(&mut self) -> Result<(), End> {
        let header = self.bits(3)?;
        match header >> 1 {
            0 => self.stored()?,
            1 => {
                self.symbols(&FIXED.0, &FIXED.1)?;
            }
            2 => {
                let (literals, distances) = self.tables()?;
                self.symbols(&literals, &distances)?;
            }
            _ => return Err(End::Broken),
        }
        if header & 1 == 1 {
            self.position = self.position.next_multiple_of(8);
            self.start = Start {
                input: self.position,
                output: self.out.len(),
            };
        }
        Ok(())
    }

    fn stored(&mut self) -> Result<(), End> {
        self.position = self.position.next_multiple_of(8);
        let length = self.bits(32)?;
        if length & 0xffff != !(length >> 16) & 0xffff {
            return Err(End::Broken);
        }
        for _ in 0..length & 0xffff {
            let byte = self.bits(8)? as u8;
            self.out.push(byte);
        }
        Ok(())
    }

    fn symbols(&mut self, literals: &Codes, distances: &Codes) -> Result<(), End> {
        loop {
            match self.symbol(literals)? {
                literal @ ..=255 => self.out.push(literal as u8),
                256 => return Ok(()),
                symbol @ 257..=285 => {
                    let length = match symbol {
                        285 => 258,
                        _ => 3 + self.extended(symbol - 257, 4)?,
                    };
                    let distance = self.symbol(distances)?;
                    if distance > 29 {
                        return Err(End::Broken);
                    }
                    let distance = 1 + self.extended(distance, 2)?;
                    if distance > self.out.len() - self.start.output {
                        return Err(End::Broken);
                    }
                    for _ in 0..length {
                        self.out.push(self.out[self.out.len() - distance]);
                    }
                }
                _ => return Err(End::Broken),
            }
        }
    }

    /// The number for a symbol: each group of `group` symbols has one more extra bit, after the first two groups (RFC
    /// 1951 §3.2.5).
    fn extended(&mut self, symbol: usize, group: usize) -> Result<usize, End> {
        let extra = |symbol: usize| (symbol / group).saturating_sub(1);
        let base: usize = (0..symbol).map(|smaller| 1 << extra(smaller)).sum();
        Ok(base + self.bits(extra(symbol))?)
    }

    /// The next symbol. The stream is broken as soon as no code begins with these bits.
    fn symbol(&mut self, codes: &Codes) -> Result<usize, End> {
        let mut code = 0;
        for length in 1..=codes.longest {
            code = code << 1 | self.bits(1)?;
            if let Some(&symbol) = codes.symbols.get(&(length, code)) {
                return Ok(symbol);
            }
        }
        Err(End::Broken)
    }

    /// The codes of a block with dynamic codes (RFC 1951 §3.2.7).
    fn tables(&mut self) -> Result<(Codes, Codes), End> {
        const ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
        let counts = self.bits(14)?;
        let (literals, distances) = (257 + (counts & 31), 1 + (counts >> 5 & 31));
        if literals > 286 || distances > 30 {
            return Err(End::Broken);
        }
        let mut code_lengths = vec![0; 19];
        for &symbol in &ORDER[..4 + (counts >> 10)] {
            code_lengths[symbol] = self.bits(3)?;
        }
        if code_lengths.iter().all(|&length| length == 0) {
            // Broken as well, but the library notices only after it has taken a bit for each length.
            (0..literals + distances).try_for_each(|_| self.bits(1).map(drop))?;
        }
        if room(&code_lengths) != 0 {
            return Err(End::Broken);
        }
        let code_lengths = codes(&code_lengths);
        let mut lengths: Vec<usize> = Vec::new();
        while lengths.len() < literals + distances {
            let (length, times) = match self.symbol(&code_lengths)? {
                16 => {
                    let times = 3 + self.bits(2)?;
                    (*lengths.last().ok_or(End::Broken)?, times)
                }
                17 => (0, 3 + self.bits(3)?),
                18 => (0, 11 + self.bits(7)?),
                length => (length, 1),
            };
            lengths.extend(std::iter::repeat_n(length, times));
        }
        if lengths.len() > literals + distances || lengths[256] == 0 {
            return Err(End::Broken);
        }
        let distances = lengths.split_off(literals);
        let usable = |lengths: &[usize]| match room(lengths) {
            0 => true,
            // One code of one bit may stand alone, and a block of literals needs no distances.
            left => left > 0 && lengths.iter().all(|&length| length <= 1),
        };
        if usable(&lengths) && usable(&distances) {
            Ok((codes(&lengths), codes(&distances)))
        } else {
            Err(End::Broken)
        }
    }
}

/// The codes of literals and distances in blocks with fixed codes (RFC 1951 §3.2.6).
static FIXED: LazyLock<(Codes, Codes)> = LazyLock::new(|| {
    let length = |symbol| match symbol {
        144..=255 => 9,
        256..=279 => 7,
        _ => 8,
    };
    let literals: Vec<usize> = (0..288).map(length).collect();
    (codes(&literals), codes(&[5; 32]))
});

/// The code of an alphabet, from the length of each symbol's code.
fn codes(lengths: &[usize]) -> Codes {
    let mut symbols = HashMap::new();
    let mut code = 0;
    for length in 1..=15 {
        for symbol in (0..lengths.len()).filter(|&symbol| lengths[symbol] == length) {
            symbols.insert((length, code), symbol);
            code += 1;
        }
        code <<= 1;
    }
    let longest = lengths.iter().copied().max().unwrap_or(0).max(1);
    Codes { symbols, longest }
}

/// The part of the space of 15 bits that the codes leave free; less than 0 if there are too many.
fn room(lengths: &[usize]) -> isize {
    let used = lengths
        .iter()
        .filter(|&&length| length > 0)
        .map(|&length| 1 << (15 - length));
    (1 << 15) - used.sum::<isize>()
}
