//! Remembers the last records without data that rustls has decrypted. rustls keeps a handshake message until its last
//! part arrives, and does not export it. So a connection that leaves rustls repeats these records.

/// Most bytes to remember. A key update, the only message that a client may send, takes 27 bytes.
const MOST_BYTES: usize = 1024;

/// See the head of this file.
#[derive(Default)]
pub(super) struct QuietRecords {
    /// All records without data so far: at least the number of key updates of the peer.
    count: u32,
    /// Records since the last one with data, encrypted.
    recent: Vec<Box<[u8]>>,
    bytes: usize,
}

impl QuietRecords {
    /// Notes a record that was decrypted.
    pub(super) fn note(&mut self, record: &[u8], has_data: bool) {
        if has_data {
            if self.bytes > 0 {
                (self.recent, self.bytes) = (Vec::new(), 0);
            }
            return;
        }
        self.count = self.count.saturating_add(1);
        self.bytes += record.len();
        if self.is_complete() {
            self.recent.push(record.into());
        } else {
            self.recent = Vec::new();
        }
    }

    /// Number of records without data so far.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// True if none of the records since the last one with data was too long to remember.
    pub(super) fn is_complete(&self) -> bool {
        self.bytes <= MOST_BYTES
    }

    /// The last `most` of the records since the last one with data.
    pub(super) fn last(&mut self, most: u64) -> &mut [Box<[u8]>] {
        let skipped = (self.recent.len() as u64).saturating_sub(most) as usize;
        &mut self.recent[skipped..]
    }
}
