//! Measures the decision about the file that a path names: `cargo bench -p fairlead-wire --bench path`.

mod measure;

use fairlead_wire::{relative_path, PathFault, PathKind, PathRules};
use measure::measure;
use std::hint::black_box;

fn main() {
    let rules = PathRules::default();
    let mut out = Vec::new();
    let mut read = |what: &str, path: &str, expected: Result<PathKind, PathFault>| {
        measure(&format!("{what}, {} bytes", path.len()), || {
            assert_eq!(relative_path(black_box(path.as_bytes()), rules, &mut out), expected);
        });
    };
    read("the root", "/", Ok(PathKind::Folder));
    read("short", "/articles/17", Ok(PathKind::File));
    read(
        "of an asset",
        "/assets/application-9f86d081884c7d65.js",
        Ok(PathKind::File),
    );
    let long = "/node_modules/some-package/dist".repeat(8);
    read("long", &long, Ok(PathKind::File));
    read("encoded", "/reports/a%20b%20c/2026%2D07.pdf", Ok(PathKind::File));
    read(
        "in UTF-8",
        "/%E6%96%87%E6%9B%B8/%E3%83%95%E3%82%A1%E3%82%A4%E3%83%AB.txt",
        Ok(PathKind::File),
    );
    read("with a tilde", "/~user/release~notes/index.html", Ok(PathKind::File));
    read(
        "with two dots",
        "/assets/../config/database.yml",
        Err(PathFault::ParentFolder),
    );
}
