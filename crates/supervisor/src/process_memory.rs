//! The memory of a process.

use std::fs;
use std::io::{Error, ErrorKind, Result};

/// Bytes in one unit of `smaps_rollup`.
const UNIT: u64 = 1024;

/// The proportional set size of a process in bytes: its own pages, and its share of pages of several processes. The
/// kernel walks over all pages, which takes milliseconds for each gigabyte.
///
/// # Errors
/// If the process has ended, or may not be read.
pub fn proportional(pid: i32) -> Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    parse(&text).ok_or_else(|| Error::new(ErrorKind::InvalidData, "smaps_rollup has no Pss"))
}

fn parse(text: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let number: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(UNIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_read() {
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let memory = proportional(std::process::id() as i32).expect("this process may be read");
        assert!(memory > block.len() as u64 && memory < 16 << 30, "{memory}");
        assert!(proportional(i32::MAX).is_err_and(|error| error.kind() == ErrorKind::NotFound));
    }

    #[test]
    fn only_the_line_of_the_whole_counts() {
        let text = "00400000-7ff rollup\nRss:  9 kB\nPss:          5 kB\nPss_Dirty:  3 kB\n";
        assert_eq!((parse(text), parse("Rss: 9 kB\n")), (Some(5 * 1024), None));
    }
}
