//! Responds with a file: conditions and ranges select the bytes that are sent (RFC 9110 §13.2.2, §14), both for files
//! of the public folder and for files that the app has named.

use super::state::ResponsePhase;
use super::Exchange;
use crate::files::{content_type, Content, Description, Document, Identity};
use fairlead_wire::conditions::{parse_http_date, Outcome, Validators};
use fairlead_wire::multipart;
use fairlead_wire::ranges::Ranges;
use rustix::fs::Stat;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

/// The selected part of a file.
enum Selection {
    Whole,
    Part(Range<u64>),
    Parts(Vec<Range<u64>>),
    /// 304.
    NotModified,
    /// 412.
    Failed,
    /// 416.
    Unsatisfiable,
}

impl Selection {
    fn status(&self) -> u16 {
        match self {
            Selection::Whole => 200,
            Selection::Part(_) | Selection::Parts(_) => 206,
            Selection::NotModified => 304,
            Selection::Failed => 412,
            Selection::Unsatisfiable => 416,
        }
    }
}

impl Exchange<'_> {
    /// Responds with a file of the public folder.
    pub(crate) fn respond_with(&mut self, document: &Document, content: &Content) {
        let description = &document.description;
        let size = description.identity.size();
        let selection = self.select(&description.etag, Some(description.identity.modified()), size);
        if let Selection::Failed = selection {
            return self.respond_plainly(412);
        }
        self.start(selection.status());
        if !matches!(selection, Selection::Unsatisfiable) {
            self.head.response.fields.extend(&document.fields);
        }
        if let Selection::Whole | Selection::Part(_) = selection {
            self.head
                .response
                .fields
                .add(b"content-type", document.content_type.as_bytes());
        }
        if let (Some(coding), Selection::Whole | Selection::Part(_) | Selection::Parts(_)) =
            (document.coding, &selection)
        {
            let _ = self.field(b"content-encoding", coding.token().as_bytes());
        }
        self.send_selected(selection, size, document.content_type.as_bytes(), content);
    }

    /// Redirects to the folder's name with a slash, because links in its index are relative to it (RFC 9110 §15.4.2).
    pub(crate) fn redirect_to_folder(&mut self) {
        let request = self.request();
        let mut location = request.path().to_vec();
        location.push(b'/');
        if let Some(query) = request.query() {
            location.push(b'?');
            location.extend_from_slice(query);
        }
        self.respond_plainly_with(301, &[(b"location", &location)]);
    }

    /// Responds with a file that the app has opened or named, after the app's head was begun. Its status and fields
    /// stay, unless conditions and ranges change them; missing fields are derived from the file. `name`: the name of a
    /// file that replaces the body. Returns false, with nothing changed, if the app frames the body itself.
    pub(super) fn send(&mut self, content: &Content, stat: &Stat, name: Option<&str>) -> bool {
        let description = Description::new(Identity::of(stat), None);
        let size = description.identity.size();
        if name.is_some() {
            self.drop_own_framing();
        }
        if self.has_own_framing() {
            return false;
        }
        let written = Written::of(self);
        let selection = if written.may_be_selected {
            let etag = written.etag.as_deref().unwrap_or(&description.etag);
            let modified = written.modified.unwrap_or(Some(description.identity.modified()));
            self.select(etag, modified, size)
        } else {
            Selection::Whole
        };
        if matches!(selection, Selection::Failed) && self.take_back() {
            self.respond_plainly(412);
            return true;
        }
        if !matches!(selection, Selection::Whole) {
            self.head.response.status = selection.status();
        }
        let content_type = self.complete_fields(&written, &description, &selection, name);
        self.send_selected(selection, size, content_type.as_bytes(), content);
        true
    }

    /// Adds fields about the file that the app has not set; returns its media type.
    fn complete_fields(
        &mut self,
        written: &Written,
        description: &Description,
        selection: &Selection,
        name: Option<&str>,
    ) -> String {
        if written.may_be_selected {
            if written.etag.is_none() {
                self.head.response.fields.add(b"etag", description.etag.as_bytes());
            }
            if written.modified.is_none() {
                self.head
                    .response
                    .fields
                    .add(b"last-modified", description.last_modified.as_bytes());
            }
        }
        if let Selection::Parts(_) = selection {
            // Each part has its own media type.
            self.head.response.fields.remove(b"content-type");
        }
        match (&written.content_type, name) {
            (Some(content_type), _) => content_type.clone(),
            (None, Some(name)) => {
                let guess = content_type(name);
                if matches!(selection, Selection::Whole | Selection::Part(_)) {
                    self.head.response.fields.add(b"content-type", guess.as_bytes());
                }
                guess
            }
            (None, None) => "application/octet-stream".into(),
        }
    }

    fn select(&self, etag: &str, modified: Option<u64>, size: u64) -> Selection {
        let validators = Validators {
            etag: Some(etag.as_bytes()),
            modified,
        };
        match self.request().evaluate(&validators) {
            Outcome::NotModified => return Selection::NotModified,
            Outcome::Failed => return Selection::Failed,
            Outcome::Proceed => {}
        }
        match self.request().ranges(&validators, size) {
            Ranges::Whole => Selection::Whole,
            Ranges::Unsatisfiable => Selection::Unsatisfiable,
            Ranges::Parts(mut parts) if parts.len() == 1 => parts.pop().map_or(Selection::Whole, Selection::Part),
            Ranges::Parts(parts) => Selection::Parts(parts),
        }
    }

    /// Ends the head, and writes the body.
    fn send_selected(&mut self, selection: Selection, size: u64, content_type: &[u8], content: &Content) {
        let mut value = Vec::new();
        match selection {
            Selection::Whole => {
                self.add_accept_ranges();
                self.end_head(Some(size));
                self.write_content(content, 0..size);
            }
            Selection::Part(range) => {
                multipart::content_range(&range, size, &mut value);
                let _ = self.field(b"content-range", &value);
                self.add_accept_ranges();
                self.end_head(Some(range.end - range.start));
                self.write_content(content, range);
            }
            Selection::Parts(ranges) => self.write_parts(&ranges, size, content_type, content),
            Selection::Unsatisfiable => {
                multipart::unsatisfied(size, &mut value);
                let _ = self.field(b"content-range", &value);
                self.end_head(Some(0));
            }
            Selection::NotModified | Selection::Failed => self.end_head(Some(0)),
        }
    }

    fn add_accept_ranges(&mut self) {
        if !self.head.response.fields.has(b"accept-ranges") {
            self.head.response.fields.add(b"accept-ranges", b"bytes");
        }
    }

    /// Sends several ranges, each with its own part header (RFC 9110 §14.6).
    fn write_parts(&mut self, ranges: &[Range<u64>], size: u64, content_type: &[u8], content: &Content) {
        let boundary = boundary();
        let boundary = boundary.as_bytes();
        let mut text = b"multipart/byteranges; boundary=".to_vec();
        text.extend_from_slice(boundary);
        let _ = self.field(b"content-type", &text);
        self.add_accept_ranges();
        self.end_head(Some(multipart::length(boundary, Some(content_type), ranges, size)));
        for range in ranges {
            text.clear();
            multipart::part_head(boundary, Some(content_type), range, size, &mut text);
            self.write_few(&text);
            self.write_content(content, range.clone());
        }
        text.clear();
        multipart::closing(boundary, &mut text);
        self.write_few(&text);
    }

    fn write_content(&mut self, content: &Content, range: Range<u64>) {
        match content {
            Content::Memory(bytes) => {
                let range = range.start as usize..range.end as usize;
                self.write_few(bytes.get(range).unwrap_or_default());
            }
            Content::File(file, device) => {
                self.write_file(Arc::clone(file), *device, range.start, range.end - range.start);
            }
        }
    }
}

/// Random, so that it occurs in no part.
fn boundary() -> String {
    let random = || RandomState::new().hash_one(0u8);
    format!("{:016x}{:016x}", random(), random())
}

/// Fields about the file that the app has set.
struct Written {
    etag: Option<String>,
    /// `Some(None)` for an invalid date.
    modified: Option<Option<u64>>,
    content_type: Option<String>,
    /// Conditions and ranges apply: only to a plain 200 to GET or HEAD.
    may_be_selected: bool,
}

impl Written {
    fn of(exchange: &Exchange<'_>) -> Written {
        let text = |name: &[u8]| {
            let value = exchange.head.response.fields.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        };
        let modified = text(b"last-modified").map(|value| parse_http_date(value.as_bytes()));
        let method = exchange.request().method();
        let is_plain = exchange.head.response.status == 200
            && matches!(method, b"GET" | b"HEAD")
            && exchange.phase == ResponsePhase::Head;
        Written {
            etag: text(b"etag"),
            modified,
            content_type: text(b"content-type"),
            may_be_selected: is_plain && !exchange.head.response.fields.has(b"content-range"),
        }
    }
}
