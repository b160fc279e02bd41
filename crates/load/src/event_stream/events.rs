//! Events in a stream (WHATWG HTML §9.2.6): lines that end with CR LF, LF or CR; the data of an event are its `data`
//! lines; an empty line ends it.

use memchr::memchr2;

/// Longest accepted event.
const EVENT_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The last line ended with CR; a following LF belongs to it.
    after_cr: bool,
    /// The data so far, with a line break after each line.
    data: Vec<u8>,
    /// `data` belongs to the previous event.
    found: bool,
}

impl Events {
    /// Consumes `bytes` up to the end of the next event; returns `false` if there is none, after consuming everything.
    pub(crate) fn find(&mut self, bytes: &mut &[u8]) -> Result<bool, &'static str> {
        if self.found {
            self.data.clear();
            self.found = false;
        }
        loop {
            if self.after_cr && !bytes.is_empty() {
                *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
                self.after_cr = false;
            }
            let Some(end) = memchr2(b'\r', b'\n', bytes) else {
                self.keep(bytes)?;
                *bytes = &[];
                return Ok(false);
            };
            let (line, ending) = (&bytes[..end], bytes[end]);
            *bytes = &bytes[end + 1..];
            self.after_cr = ending == b'\r';
            if self.line.is_empty() {
                self.found = add(&mut self.data, line);
            } else {
                self.keep(line)?;
                self.found = add(&mut self.data, &self.line);
                self.line.clear();
            }
            if self.data.len() > EVENT_BYTES {
                return Err("an event too long");
            }
            if self.found {
                return Ok(true);
            }
        }
    }

    /// The data of the last event.
    pub(crate) fn data(&self) -> &[u8] {
        self.data.strip_suffix(b"\n").unwrap_or(&self.data)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.line.len() + bytes.len() > EVENT_BYTES {
            return Err("an event too long");
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }
}

/// Adds a line; returns `true` if it ends an event that has data.
fn add(data: &mut Vec<u8>, line: &[u8]) -> bool {
    if line.is_empty() {
        return !data.is_empty();
    }
    match line.strip_prefix(b"data") {
        Some([b':', b' ', value @ ..] | [b':', value @ ..]) => {
            data.extend_from_slice(value);
            data.push(b'\n');
        }
        Some([]) => data.push(b'\n'),
        _ => {}
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, size: usize) -> Vec<String> {
        let (mut events, mut found) = (Events::default(), Vec::new());
        for mut piece in text.as_bytes().chunks(size) {
            while events.find(&mut piece).expect("short") {
                found.push(String::from_utf8_lossy(events.data()).into_owned());
            }
        }
        found
    }

    #[test]
    fn events_are_found_wherever_reads_cut_them() {
        let text = ": hello\n\ndata: one\n\nevent: e\nid: 7\ndata:two\ndata:  more\n\nretry: 1\n\ndata\n\ndatax: no\n\ndata: cut";
        for ending in ["\n", "\r\n", "\r"] {
            let text = text.replace('\n', ending);
            for size in 1..text.len() {
                assert_eq!(read(&text, size), ["one", "two\n more", ""], "{ending:?} {size}");
            }
        }
    }
}
