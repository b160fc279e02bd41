//! Sets `native_linux`, which chooses the implementation of every facility. `--cfg fairlead_portable` in RUSTFLAGS builds the
//! implementation for other systems on Linux.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(native_linux)");
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux && std::env::var_os("CARGO_CFG_FAIRLEAD_PORTABLE").is_none() {
        println!("cargo::rustc-cfg=native_linux");
    }
}
