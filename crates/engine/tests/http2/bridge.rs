//! Runs the cases of `tests/requests` over HTTP/2: a test writes HTTP/1 requests to a bridge and reads HTTP/1 responses
//! from it. In between they are streams.

use crate::support::http2::{Asked, Http2Client};
use http::Request;
use std::collections::VecDeque;
use std::io::{Read, Write};

/// See the head of this file.
pub(super) struct Bridge {
    client: Http2Client,
    /// Bytes that were written and are not sent yet.
    requests: Vec<u8>,
    /// The request with an incomplete body, and the number of missing bytes.
    body: Option<(Asked, usize)>,
    asked: VecDeque<Asked>,
    /// Bytes that were received and are not read yet.
    responses: Vec<u8>,
}

impl Bridge {
    pub(super) fn new(mut client: Http2Client) -> Bridge {
        // Until the server has sent the maximum number of streams.
        client.wait_for_settings();
        Bridge {
            client,
            requests: Vec::new(),
            body: None,
            asked: VecDeque::new(),
            responses: Vec::new(),
        }
    }

    /// Sends the requests that are complete so far.
    fn send(&mut self) {
        loop {
            if let Some((mut asked, missing)) = self.body.take() {
                let now = missing.min(self.requests.len());
                let part: Vec<u8> = self.requests.drain(..now).collect();
                let ends = now == missing;
                self.client.upload(&mut asked.body, &part, ends).expect("windows");
                match ends {
                    true => self.asked.push_back(asked),
                    false => return self.body = Some((asked, missing - now)),
                }
            }
            let Some(end) = self.requests.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
                return;
            };
            let head: Vec<u8> = self.requests.drain(..end + 4).collect();
            let (request, length) = translate(&String::from_utf8(head).expect("text"));
            let asked = self.client.ask(request, length > 0);
            match length {
                0 => self.asked.push_back(asked),
                _ => self.body = Some((asked, length)),
            }
        }
    }
}

/// A head of HTTP/1 as a head of HTTP/2, and the length of its body.
fn translate(head: &str) -> (Request<()>, usize) {
    let mut lines = head.trim_end().split("\r\n");
    let mut first = lines.next().expect("a request line").split(' ');
    let (method, target) = (first.next().expect("a method"), first.next().expect("a target"));
    let mut request = Request::builder().method(method);
    let (mut host, mut length) = ("", 0);
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field");
        match name.to_ascii_lowercase().as_str() {
            "host" => host = value,
            name => {
                if name == "content-length" {
                    length = value.parse().expect("a length");
                }
                request = request.header(name, value);
            }
        }
    }
    let request = request.uri(format!("http://{host}{target}"));
    (request.body(()).expect("a request"), length)
}

impl Write for Bridge {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.requests.extend_from_slice(bytes);
        self.send();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Read for Bridge {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        if self.responses.is_empty() {
            if let Some((asked, _)) = &mut self.body {
                let status = self.client.interim(asked).expect("an interim response");
                self.responses = format!("HTTP/1.1 {} \r\n\r\n", status.as_u16()).into_bytes();
            } else if let Some(asked) = self.asked.pop_front() {
                let response = self.client.response(asked).expect("a response");
                let head = response
                    .head
                    .replacen("HTTP/2", "HTTP/1.1", 1)
                    .replacen("\r\n", " \r\n", 1);
                self.responses = [head.as_bytes(), &response.body].concat();
            }
        }
        let count = space.len().min(self.responses.len());
        space[..count].copy_from_slice(&self.responses[..count]);
        self.responses.drain(..count);
        Ok(count)
    }
}
