//! Responses to the challenges of certificate authorities (ACME: RFC 8555 §8.3, RFC 8737). The process that orders
//! certificates puts each response into a folder before it asks the authority to validate, and removes it afterwards.
//! So any worker can respond to the authority, without a message between processes.
//!
//! Input of a peer names a file only if it cannot mean anything except a file of that folder.

use rustix::fs::{fstat, open, FileType, Mode, OFlags};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Beginning of the path of a request for a response.
const PREFIX: &[u8] = b"/.well-known/acme-challenge/";

/// Folder of responses to requests (HTTP-01), by token.
const ANSWERS: &str = "http-01";

/// Folder of certificates that are responses (TLS-ALPN-01), by host, with their keys.
const CERTIFICATES: &str = "tls-alpn-01";

/// Longest token. Tokens of RFC 8555 have at least 22 characters, and usually 43.
const TOKEN_MOST: usize = 128;

/// Longest host (RFC 1035 §2.3.4).
const HOST_MOST: usize = 253;

/// Longest response.
const ANSWER_MOST: u64 = 16 * 1024;

/// Folder with the responses to challenges. It need not exist.
#[derive(Clone, Debug)]
pub(crate) struct Challenges {
    folder: PathBuf,
}

impl Challenges {
    /// Uses the responses in `folder`.
    pub(crate) fn new(folder: PathBuf) -> Challenges {
        Challenges { folder }
    }

    /// Response to a request for `path`, if there is one now.
    pub(crate) fn answer(&self, path: &[u8]) -> Option<Vec<u8>> {
        let token = path.strip_prefix(PREFIX)?;
        let is_safe = (1..=TOKEN_MOST).contains(&token.len())
            && token
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let name = std::str::from_utf8(token).ok().filter(|_| is_safe)?;
        read(&self.folder.join(ANSWERS).join(name))
    }

    /// Certificate with its key, in PEM, that proves to the authority that `host` is ours, if there is one now.
    pub(crate) fn certificate(&self, host: &str) -> Option<Vec<u8>> {
        let is_safe = (1..=HOST_MOST).contains(&host.len())
            && !host.starts_with('.')
            && host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
        let name = is_safe.then(|| format!("{}.pem", host.to_ascii_lowercase()))?;
        read(&self.folder.join(CERTIFICATES).join(name))
    }
}

/// Content of a small file; `None` if it is something else, or cannot be opened.
fn read(path: &Path) -> Option<Vec<u8>> {
    let how = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
    let file = open(path, how, Mode::empty()).ok()?;
    let is_file = FileType::from_raw_mode(fstat(&file).ok()?.st_mode) == FileType::RegularFile;
    let mut content = Vec::new();
    let length = File::from(file).take(ANSWER_MOST + 1).read_to_end(&mut content).ok()?;
    (is_file && length as u64 <= ANSWER_MOST).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn folder() -> (tempfile::TempDir, Challenges) {
        let folder = tempfile::tempdir().expect("a folder");
        for name in [ANSWERS, CERTIFICATES] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        fs::write(folder.path().join("secret"), "the key").expect("a file");
        let challenges = Challenges::new(folder.path().to_path_buf());
        (folder, challenges)
    }

    #[test]
    fn a_token_is_answered_while_its_file_is_there() {
        let (folder, challenges) = folder();
        let path = folder.path().join("http-01/To-k_3n");
        fs::write(&path, "To-k_3n.thumbprint").expect("a file");
        let answer = challenges.answer(b"/.well-known/acme-challenge/To-k_3n");
        assert_eq!(Some(b"To-k_3n.thumbprint".to_vec()), answer);
        fs::remove_file(path).expect("a file");
        assert_eq!(None, challenges.answer(b"/.well-known/acme-challenge/To-k_3n"));
    }

    #[test]
    fn nothing_but_a_token_names_a_file() {
        let (folder, challenges) = folder();
        fs::write(folder.path().join("http-01/a.b"), "x").expect("a file");
        fs::create_dir(folder.path().join("http-01/folder")).expect("a folder");
        symlink("../secret", folder.path().join("http-01/link")).expect("a link");
        fs::write(
            folder.path().join("http-01/large"),
            vec![b'x'; ANSWER_MOST as usize + 1],
        )
        .expect("a file");
        let long = "x".repeat(TOKEN_MOST + 1);
        fs::write(folder.path().join("http-01").join(&long), "x").expect("a file");
        for token in [
            "",
            ".",
            "..",
            "a.b",
            "../secret",
            "%2e%2e/secret",
            "folder",
            "link",
            "large",
            "a\0",
            "missing",
            &long,
        ] {
            let path = format!("/.well-known/acme-challenge/{token}");
            assert_eq!(None, challenges.answer(path.as_bytes()), "{token}");
        }
        assert_eq!(None, challenges.answer(b"/.well-known/"));
    }

    #[test]
    fn a_host_is_found_in_any_case_and_names_nothing_else() {
        let (folder, challenges) = folder();
        fs::write(folder.path().join("tls-alpn-01/shop.example.pem"), "pem").expect("a file");
        assert_eq!(Some(b"pem".to_vec()), challenges.certificate("Shop.EXAMPLE"));
        for host in ["", ".", "..", "../secret", "a/b", "other.example"] {
            assert_eq!(None, challenges.certificate(host), "{host}");
        }
    }

    #[test]
    fn the_folder_need_not_exist() {
        let challenges = Challenges::new("/nowhere/at/all".into());
        assert_eq!(None, challenges.answer(b"/.well-known/acme-challenge/token"));
    }
}
