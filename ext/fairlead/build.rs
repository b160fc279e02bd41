//! Tells the compiler which version of Ruby it builds for, as `cfg(ruby_gte_3_2)` and the like.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let _ = rb_sys_env::activate()?;
    Ok(())
}
