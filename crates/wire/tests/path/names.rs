//! Devices and short names, in all their forms.

use crate::support::{read, read_with, HIDDEN};
use fairlead_wire::PathFault::{DeviceName, ShortName};

fn devices() -> Vec<String> {
    let ports = |kind: &str| {
        "0123456789¹²³"
            .chars()
            .map(|number| format!("{kind}{number}"))
            .collect::<Vec<_>>()
    };
    let others = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].map(str::to_owned);
    [&others[..], &ports("COM"), &ports("LPT")].concat()
}

#[test]
fn devices_are_refused_in_any_case_with_any_extension_anywhere() {
    let alternating = |text: &str| -> String {
        let cased = |(index, letter): (usize, char)| {
            if index % 2 == 0 {
                letter.to_ascii_lowercase()
            } else {
                letter.to_ascii_uppercase()
            }
        };
        text.chars().enumerate().map(cased).collect()
    };
    for device in devices() {
        for name in [device.to_lowercase(), alternating(&device), device] {
            for path in [
                format!("/{name}"),
                format!("/{name}/"),
                format!("/{name}.txt"),
                format!("/{name}.tar.gz"),
                format!("/{name} .txt"),
                format!("/{name}%20%20.txt"),
                format!("/a/b.c/{name}/d"),
                format!("/{name}.a.b/d"),
            ] {
                assert_eq!(read(&path), Err(DeviceName), "{path}");
                assert_eq!(read_with(&path, HIDDEN), Err(DeviceName), "{path}");
            }
        }
    }
}

#[test]
fn names_around_those_of_devices_are_none() {
    for device in devices() {
        for path in [
            format!("a{device}"),
            format!("{device}a"),
            format!("{device}a.txt"),
            format!("a.{device}"),
            format!(" {device}"),
            format!("{device}-"),
            format!("{device}_.txt"),
            format!("{device} a.txt"),
            device[..2].to_owned(),
        ] {
            // CON is the start of CONIN$ and CONOUT$, but these tails do not make either of them.
            assert_eq!(read(format!("/{path}")).as_deref(), Ok(path.as_str()));
        }
    }
}

#[test]
fn short_names_are_those_of_eight_and_three() {
    for stem in 0..=12 {
        for digits in 0..=6 {
            for extension in 0..=5 {
                let name = format!("{}~{}", "x".repeat(stem), "1".repeat(digits));
                let name = [name, "y".repeat(extension)].join(if extension > 0 { "." } else { "" });
                let is_short = digits > 0 && stem + 1 + digits <= 8 && extension <= 3;
                let is_hidden = digits == 0 && extension == 0;
                let expected = if is_short { Err(ShortName) } else { Ok(name.clone()) };
                assert_eq!(read(format!("/{name}")).is_ok(), !is_short && !is_hidden, "{name}");
                assert_eq!(
                    read_with(format!("/a/{name}"), HIDDEN),
                    expected.map(|name| format!("a/{name}"))
                );
            }
        }
    }
}
