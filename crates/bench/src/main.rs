//! `cargo xtask bench load` and its kin.

#[cfg(target_os = "linux")]
fn main() -> anyhow::Result<()> {
    bench::run(std::env::args_os())
}

#[cfg(not(target_os = "linux"))]
fn main() -> anyhow::Result<()> {
    anyhow::bail!("figures of processes come from Linux")
}
