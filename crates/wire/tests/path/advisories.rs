//! Published advisories about file servers, most of them in Ruby, each tried against this code.

use crate::check;
use crate::support::{encoded, read, read_with, HIDDEN};
use fairlead_wire::PathFault::{self, *};

#[track_caller]
fn refuse(fault: PathFault, paths: &[&str]) {
    for path in paths {
        assert_eq!(read(path), Err(fault), "{path:?}");
        assert_eq!(read_with(path, HIDDEN).is_err(), fault != HiddenName, "{path:?}");
        check::path(path.as_bytes());
    }
}

/// Mongrel: decoded a decoded and checked path once more to open it.
#[test]
fn cve_2007_6612_double_decoding() {
    for path in ["/.%252e/.%252e/etc/passwd", "/%252e%252e/%252e%252e/etc/passwd"] {
        let once = path.replace("%25", "%");
        assert_eq!(
            read_with(path, HIDDEN).ok().as_deref(),
            once.strip_prefix('/'),
            "{path}"
        );
        assert_eq!(read(once), Err(ParentFolder));
    }
    refuse(HiddenName, &["/.%252e/.%252e/etc/passwd"]);
}

/// WEBrick: a backslash, plain or encoded, is a separator on Windows, but the check searched for slashes.
#[test]
fn cve_2008_1145_backslashes() {
    refuse(
        Backslash,
        &[
            "/..\\..\\..\\boot.ini",
            "/..%5c..%5c..%5cboot.ini",
            "/..%5C..%5Cboot.ini",
            "/a/..%5c..%5cboot.ini",
            "/%5c..%5cboot.ini",
        ],
    );
}

/// WEBrick: compared `NondisclosureName` with regard to case, on file systems that ignore case. Here hidden names begin
/// with a dot or end with a tilde, and these have no other case.
#[test]
fn cve_2008_1145_letter_case_of_hidden_names() {
    refuse(
        HiddenName,
        &[
            "/.htpasswd",
            "/.HTPASSWD",
            "/.HtPasswd",
            "/%2eHTACCESS",
            "/.Git/config",
            "/backup.RB~",
            "/backup.rb%7E",
        ],
    );
    refuse(DeviceName, &["/Nul", "/nUL.html", "/cOm1"]);
    refuse(ShortName, &["/htpass~1", "/HTPASS~1", "/HtPass~1"]);
}

/// WEBrick: on NTFS and FAT, a name with certain characters at its end opened the same file, and its source was shown.
/// A plus sign at the end is harmless here: no file system drops it, and it does not stand for a space in a path.
#[test]
fn cve_2008_1891_names_with_tails() {
    refuse(
        TrailingDotOrSpace,
        &[
            "/a.cgi.",
            "/a.cgi%2e",
            "/a.cgi%2E",
            "/a.cgi%20",
            "/a.cgi...",
            "/a.cgi.%20",
            "/a.cgi%20%20",
            "/cgi./a",
        ],
    );
    refuse(
        Colon,
        &[
            "/a.cgi::$DATA",
            "/a.cgi::$data",
            "/a.cgi%3a%3a$DATA",
            "/a.cgi:$DATA",
            "/a.cgi::$DATA.",
        ],
    );
    for plus in ["/a.cgi+", "/a.cgi%2b", "/a.cgi%2B"] {
        assert_eq!(read(plus).as_deref(), Ok("a.cgi+"));
    }
    assert_eq!(read("/a+b.cgi").as_deref(), Ok("a+b.cgi"));
}

/// Rack::File: counted the names before `..`, but a link among them led elsewhere, so that the `..` after it left the
/// root.
#[test]
fn cve_2013_0262_counting_names_across_links() {
    refuse(
        ParentFolder,
        &[
            "/cgi/../test",
            "/link/../../secret",
            "/a/b/../../../secret",
            "/a/b/..",
            "/a/%2e%2e/b",
        ],
    );
}

/// Rack::Directory: joined the path to the root, or compared it with the root, before it was resolved.
#[test]
fn cve_2020_8161_and_2026_22860_outside_the_root_by_its_prefix() {
    refuse(
        ParentFolder,
        &[
            "/../root_example/",
            "/../rootsecret/a",
            "/cgi/../../root-of-another/",
            "/%2E%2E/root_example/",
        ],
    );
}

/// iodine: the check for `..` and the opening of the file used different texts.
#[test]
fn cve_2024_22050_traversal_past_the_public_folder() {
    refuse(
        ParentFolder,
        &[
            "/../../etc/passwd",
            "/a/../../etc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/.%2e/a",
            "/a/..",
            "/a/%2e%2e",
        ],
    );
    refuse(
        EncodedSlash,
        &[
            "/..%2f..%2fetc%2fpasswd",
            "/%2e%2e%2f%2e%2e%2fetc/passwd",
            "/a%2f..%2f..%2fetc/passwd",
        ],
    );
    refuse(EmptyName, &["//etc/passwd", "/a//../etc/passwd", "/a//b"]);
    refuse(InvalidEscape, &["/%2", "/%zz/a", "/a%"]);
}

/// Rack::Static: rules saw the path as sent, the file system saw it decoded and without its dots. Here every accepted
/// path has one form, and rules apply to that form.
#[test]
fn cve_2025_27610_and_2026_34786_two_views_of_a_path() {
    refuse(
        ParentFolder,
        &["/css/../config/database.yml", "/css/%2e%2e/config/database.yml"],
    );
    refuse(CurrentFolder, &["/./config/database.yml", "/css/%2e/app.css"]);
    for path in [
        "/fonts/test.woff",
        "/fonts/test%2Ewoff",
        "/font%73/test.woff",
        "/%66onts/test.%77off",
    ] {
        assert_eq!(read(path).as_deref(), Ok("fonts/test.woff"));
    }
    assert_eq!(read(encoded(b"/fonts/test.woff")).as_deref(), Ok("fonts/test.woff"));
}

/// Rack::Static: the prefix `/css` also matched `/css-backup`. Here whole names are compared: the exception for
/// `.well-known` does not apply to a name that only begins like it.
#[test]
fn cve_2026_34785_prefix_without_its_end() {
    refuse(
        HiddenName,
        &[
            "/.well-known-backup/a",
            "/.well-known.bak",
            "/.well-knownx",
            "/.well-known~",
            "/.well-know/a",
        ],
    );
    assert_eq!(read("/.well-known/a").as_deref(), Ok(".well-known/a"));
}

/// HTTP.jl, WebP Server: drives, shares and separators of Windows within a single name.
#[test]
fn cve_2026_53779_separators_within_a_name() {
    refuse(Backslash, &["/%5c%5chost%5cshare", "/a%5c..%5cb"]);
    refuse(Colon, &["/C:/boot.ini", "/C%3a/boot.ini", "/C:%5cboot.ini"]);
}

/// Apache: searched for dots when only one of them was decoded.
#[test]
fn cve_2021_41773_and_42013_half_encoded_dots() {
    refuse(
        ParentFolder,
        &["/cgi-bin/.%2e/.%2e/etc/passwd", "/icons/%2e./etc/passwd"],
    );
    refuse(
        InvalidEscape,
        &["/cgi-bin/%%32%65%%32%65/etc/passwd", "/cgi-bin/.%%32%65/etc/passwd"],
    );
}
