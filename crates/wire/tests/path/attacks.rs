//! Attempts to leave the folder, made of every combination: a spelling of "one up", the number of repetitions, the
//! start, and a valuable file of each system.

use crate::check;
use crate::support::read;

/// Targets of an attack, by platform.
const TARGETS: [&str; 9] = [
    "etc/passwd",
    "proc/self/environ",
    "config/database.yml",
    "windows/win.ini",
    "Windows\\System32\\drivers\\etc\\hosts",
    "C:/boot.ini",
    "private/etc/master.passwd",
    "Users/admin/.ssh/id_ed25519",
    ".env",
];

/// Starts of an attempt.
const BASES: [&str; 10] = [
    "",
    "a/",
    "assets/",
    "a/b/",
    "./",
    "/",
    "%2f",
    "a%00/",
    "~user/",
    ".well-known/",
];

/// Spellings of one step up that some system accepts. All are refused.
const STEPS: [&str; 50] = [
    "../",
    "..%2f",
    "..%2F",
    "%2e%2e/",
    "%2E%2e/",
    ".%2e/",
    "%2e./",
    "%2e%2e%2f",
    "..\\",
    "..%5c",
    "..%5C",
    "%2e%2e\\",
    "%2e%2e%5c",
    "../\\",
    "..\\/",
    "....//",
    "....\\/",
    ".../",
    "..//",
    "/../",
    "./../",
    ".././",
    "x/../../",
    "..;/",
    "..;x=y/",
    "..%3b/",
    "..%00/",
    ".%00./",
    "%00../",
    "..%0d/",
    "..%0a/",
    "..%09/",
    ".%0d./",
    "..%20/",
    ".. /",
    "..%20./",
    "..%c0%af",
    "%c0%ae%c0%ae/",
    "%c0%ae%c0%ae%c0%af",
    "%e0%80%ae%e0%80%ae/",
    "..%c1%9c",
    "..%e0%80%af",
    "..%f0%80%80%af",
    "%u002e%u002e%u2215",
    "..%ef%bc%8f",
    "%ef%bc%8e%ef%bc%8e/",
    "%e2%80%a5/",
    "%e2%80%a4%e2%80%a4/",
    ".%e2%80%8b./",
    "..%e2%88%95",
];

/// Steps that are encoded twice. They are ordinary names after one decoding, and there is only one.
const TWICE: [(&str, &str); 6] = [
    ("%252e%252e/", "%2e%2e/"),
    ("%252e%252e%252f", "%2e%2e%2f"),
    ("%255c", "%5c"),
    ("%25%32%65%25%32%65/", "%2e%2e/"),
    ("%25c0%25ae/", "%c0%ae/"),
    ("%2500/", "%00/"),
];

/// Text that some system drops, cuts off or misreads at the end of a name.
const TAILS: &str =
    ". %2e .. ... %20 %20%20 .%20. %20. ::$DATA ::$data %3a%3a$DATA :x :$I30:$INDEX_ALLOCATION %00 %00.html %0a
    \\ %5c %2f // /. /./ /.. %e2%80%8b %ef%bb%bf %c2%ad %ef%bc%8e ? %3f * %22 < > |";

const DEPTHS: [usize; 6] = [1, 2, 3, 5, 8, 20];

#[test]
fn no_step_upwards_is_taken() {
    for base in BASES {
        for step in STEPS {
            for depth in DEPTHS {
                for target in TARGETS {
                    let path = format!("/{base}{}{target}", step.repeat(depth));
                    assert!(read(&path).is_err(), "{path}");
                }
                check::path(format!("/{base}{}", step.repeat(depth)).as_bytes());
            }
        }
    }
}

/// A step is refused with any other names around it.
#[test]
fn no_step_is_taken_between_names() {
    for step in STEPS {
        for path in [
            format!("/a/{step}"),
            format!("/a/{step}b"),
            format!("/a/b/{step}c/{step}d"),
            format!("/{step}a/"),
        ] {
            assert!(read(&path).is_err(), "{path}");
            check::path(path.as_bytes());
        }
    }
}

#[test]
fn what_is_encoded_twice_is_a_name() {
    for (step, decoded) in TWICE {
        for depth in DEPTHS {
            let path = format!("/a/{}etc/passwd", step.repeat(depth));
            assert_eq!(read(&path), Ok(format!("a/{}etc/passwd", decoded.repeat(depth))));
            check::path(path.as_bytes());
        }
    }
}

/// Text after the last step, or alone: other names of a file with a guarded name.
#[test]
fn no_alias_of_a_guarded_file_is_read() {
    for name in ["config.ru", "app.cgi", "Gemfile", "login.php"] {
        for alias in TAILS.split_whitespace() {
            for base in ["/", "/a/"] {
                let path = format!("{base}{name}{alias}");
                assert!(read(&path).is_err(), "{path}");
                check::path(path.as_bytes());
            }
        }
        assert_eq!(read(format!("/{name}")).as_deref(), Ok(name));
    }
}
