//! Usual names of files, all of which must be served.

use crate::check;
use crate::support::{encoded, read, read_with, HIDDEN};

const NAMES: &[&str] = &[
    "index.html",
    "favicon.ico",
    "robots.txt",
    "assets/application-9f86d081884c7d65.js",
    "assets/index-BqX3_k9Z.js",
    "archive.tar.gz",
    "jquery-3.7.1.min.js.map",
    "a..b",
    "a.b.c.d",
    "v1.0..v1.1.diff",
    "noextension",
    "UPPER.HTML",
    "-rf",
    "--",
    "_",
    "$",
    "^{}[]`'!&=,",
    "file (1).pdf",
    "Copy of file.txt",
    " leading",
    "two  spaces.txt",
    "c++.html",
    "a+b",
    "cgi+",
    "c#.html",
    "100%.txt",
    "50%25.txt",
    "a;b.css",
    "me@example.org.vcf",
    "a&b=c.txt",
    "it's.txt",
    "~user/index.html",
    "~",
    "a~b.txt",
    "foo_1.2~rc1.deb",
    "foo_1.2~rc1-1.tar.xz",
    "GRÜSSE~ZWEI.TXT",
    "console.js",
    "comet.png",
    "nullable.css",
    "auxiliary/aux-1.css",
    "constants.rb",
    "com/example/App.class",
    "prn-report.pdf",
    "lpt.txt",
    "clocks.svg",
    ".well-known/acme-challenge/x",
    ".well-known/security.txt",
    "Grüße.txt",
    "Ελληνικά/αρχείο.html",
    "Документы/файл.pdf",
    "文書/ファイル（1）：第一章.txt",
    "한글.png",
    "عربى.html",
    "हिन्दी.txt",
    "😀.png",
    "e\u{301}te\u{301}.txt",
    "naïve – “quoted” — dash.txt",
    "½ €5 §1 №2.txt",
    "\u{a0}no-break",
    "\u{10ffff}",
];

#[test]
fn legitimate_names_are_read_as_they_are() {
    for name in NAMES.iter().filter(|name| **name != "~") {
        assert_eq!(
            read(format!("/{}", name.replace('%', "%25").replace('#', "%23"))).as_deref(),
            Ok(*name)
        );
        assert_eq!(read(encoded(format!("/{name}").as_bytes())).as_deref(), Ok(*name));
        assert_eq!(
            read(encoded(format!("/a/b/{name}/").as_bytes())).is_ok(),
            !name.starts_with('.'),
            "{name}"
        );
        check::path(format!("/{name}").as_bytes());
    }
}

/// Hidden names can be allowed; dangerous names cannot.
#[test]
fn hidden_names_are_served_on_demand() {
    for name in [
        ".env",
        ".git/config",
        "a/.htaccess",
        "backup~",
        "~",
        ".#lock",
        ".~",
        "._a",
        "a~/b",
        ".a..b",
    ] {
        let path = encoded(format!("/{name}").as_bytes());
        assert!(read(&path).is_err(), "{name}");
        assert_eq!(read_with(&path, HIDDEN).as_deref(), Ok(name));
    }
    for name in [
        ".",
        "..",
        "..a",
        "...",
        ".a.",
        ".a ",
        ".~1",
        ".\u{200d}.",
        "a/../b",
        "..namedfork",
    ] {
        let path = encoded(format!("/{name}").as_bytes());
        assert_eq!(read_with(&path, HIDDEN).is_ok(), name == ".~1", "{name}");
    }
}
