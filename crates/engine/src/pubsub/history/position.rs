//! A place in the order of all messages of a server: an epoch, which names the server, and the offset of a message.

use std::fmt;
use std::str::FromStr;

/// See the head of this file. As text: `epoch.offset`, the epoch in hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of the server.
    pub epoch: u64,
    /// The number of the last message before this position.
    pub offset: u64,
}

impl Position {
    /// The epoch, as in the text of a position.
    pub fn epoch_text(epoch: u64) -> String {
        format!("{epoch:x}")
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:x}.{}", self.epoch, self.offset)
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Position, ()> {
        let (epoch, offset) = text.split_once('.').ok_or(())?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !digits(epoch) || !digits(offset) {
            return Err(());
        }
        Ok(Position {
            epoch: u64::from_str_radix(epoch, 16).map_err(|_| ())?,
            offset: offset.parse().map_err(|_| ())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_position_is_read_back() {
        let position = Position {
            epoch: 0xfe_12,
            offset: 70,
        };
        assert_eq!(position.to_string(), "fe12.70");
        assert_eq!("fe12.70".parse(), Ok(position));
        for text in [
            "",
            ".",
            "1",
            "1.",
            ".1",
            "1.1.1",
            "x.1",
            "1.x",
            "1.-1",
            "+1.1",
            "1.18446744073709551616",
        ] {
            assert_eq!(text.parse::<Position>(), Err(()), "{text:?}");
        }
    }
}
