//! The head of a request to the control server: its path, its query and a few fields.

/// A parsed head.
#[derive(Debug)]
pub(super) struct Request {
    method: Vec<u8>,
    path: Vec<u8>,
    query: Vec<u8>,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A head that is no valid HTTP/1.
#[derive(Debug)]
pub(super) struct Malformed;

impl Request {
    /// Parses a head, up to its empty line.
    pub(super) fn parse(head: &[u8]) -> Result<Request, Malformed> {
        let mut lines = head.split(|byte| *byte == b'\n').collect::<Vec<_>>();
        let last = lines.len() - 1;
        lines[..last]
            .iter_mut()
            .for_each(|line| *line = line.strip_suffix(b"\r").unwrap_or(line));
        let (method, path, query) = request_line(lines[0]).ok_or(Malformed)?;
        let fields = lines[1..].iter().map(|line| field(line)).collect::<Option<_>>();
        Ok(Request {
            method: method.to_vec(),
            path: path.to_vec(),
            query: query.to_vec(),
            fields: fields.ok_or(Malformed)?,
        })
    }

    /// The method.
    pub(super) fn method(&self) -> &[u8] {
        &self.method
    }

    /// The path as sent.
    pub(super) fn path(&self) -> &[u8] {
        &self.path
    }

    /// The value of a field. If it occurs several times, the last one counts.
    pub(super) fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.fields.iter().rev();
        let (_, value) = fields.find(|(given, _)| given == name.as_bytes())?;
        Some(value)
    }

    /// The last part of the path, which is the command.
    pub(super) fn command(&self) -> &[u8] {
        let mut parts = self.path.split(|byte| *byte == b'/').rev();
        parts.find(|part| !part.is_empty()).unwrap_or_default()
    }

    /// The values of a parameter, as sent.
    pub(super) fn parameters<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let parts = self.query.split(|byte| *byte == b'&');
        parts.filter_map(move |part| part.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    }

    /// Returns true if a body follows the head.
    pub(super) fn has_body(&self) -> bool {
        self.field("content-length")
            .or(self.field("transfer-encoding"))
            .is_some()
    }
}

/// The method, the path and the query of `GET /path?query HTTP/1.1`. The target may be absolute.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let target = rest.strip_suffix(b" HTTP/1.1").or(rest.strip_suffix(b" HTTP/1.0"))?;
    let target = without_authority(target);
    let (path, query) = match target.iter().position(|byte| *byte == b'?') {
        Some(mark) => (&target[..mark], &target[mark + 1..]),
        None => (target, &[][..]),
    };
    let is_method = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase);
    let is_path = path.starts_with(b"/") && !path.contains(&b' ');
    (is_method && is_path && !query.iter().any(is_space)).then_some((method, path, query))
}

fn without_authority(target: &[u8]) -> &[u8] {
    let Some(rest) = target.strip_prefix(b"http://").or(target.strip_prefix(b"https://")) else {
        return target;
    };
    let end = rest.iter().position(|byte| b"/? ".contains(byte));
    &rest[end.unwrap_or(rest.len())..]
}

fn field(line: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let is_name = !name.is_empty() && !name.iter().any(is_space);
    is_name.then(|| (name.to_ascii_lowercase(), value.trim_ascii().to_vec()))
}

fn is_space(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(head: &str) -> Request {
        Request::parse(head.as_bytes()).expect("a head")
    }

    #[test]
    fn the_last_part_of_the_path_is_the_command() {
        let commands = [
            ("/stats", "stats"),
            ("/a/b/stats", "stats"),
            ("/stats/", "stats"),
            ("/", ""),
            ("/stats?x=/y", "stats"),
        ];
        for (target, command) in commands {
            assert_eq!(command.as_bytes(), request(&format!("GET {target} HTTP/1.1")).command());
        }
    }

    #[test]
    fn the_target_may_be_absolute() {
        let request = request("GET http://localhost:9293/stats?token=1 HTTP/1.0");

        assert_eq!(b"/stats", request.path());
        assert_eq!(vec![b"1"], request.parameters("token").collect::<Vec<_>>());
    }

    #[test]
    fn parameters_have_the_whole_name() {
        let request = request("GET /?token=a&xtoken=b&token=c=d&tokens=e&token HTTP/1.1");

        assert_eq!(vec![&b"a"[..], b"c=d"], request.parameters("token").collect::<Vec<_>>());
    }

    #[test]
    fn fields_have_no_case_and_the_last_one_counts() {
        let request = request("GET / HTTP/1.1\r\nA-Field:  x y \nb: c\r\nB:d");

        assert_eq!(Some(&b"x y"[..]), request.field("a-field"));
        assert_eq!(Some(&b"d"[..]), request.field("b"));
        assert_eq!(None, request.field("c"));
    }

    #[test]
    fn a_body_is_announced_by_its_length_or_its_coding() {
        assert!(request("POST / HTTP/1.1\r\nContent-Length: 3").has_body());
        assert!(request("POST / HTTP/1.1\r\ntransfer-encoding: chunked").has_body());
        assert!(!request("GET / HTTP/1.1\r\nhost: a").has_body());
    }

    #[test]
    fn everything_else_is_malformed() {
        let heads = [
            "",
            "GET /",
            "GET / HTTP/2.0",
            "get / HTTP/1.1",
            " / HTTP/1.1",
            "GET stats HTTP/1.1",
            "GET /a b HTTP/1.1",
            "GET /a?b\tc HTTP/1.1",
            "GET http://a HTTP/1.1",
            "GET http://a?b/ HTTP/1.1",
            "GET / HTTP/1.1\r\nfield",
            "GET / HTTP/1.1\r\n: x",
            "GET / HTTP/1.1\r\na b: x",
            "GET / HTTP/1.1\r\n a: x",
            "GET / HTTP/1.1\r",
        ];
        for head in heads {
            assert!(Request::parse(head.as_bytes()).is_err(), "{head:?}");
        }
    }
}
