//! What an SDK's program needs before it can run: its language and its packages.
//!
//! Packages go to the target folder, never into the tree or the system, and are
//! fetched again only when what asks for them changes. Where they come from is a
//! setting of the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Sdk;
use crate::run::Cargo;

/// How to start a program.
#[derive(Clone, Debug)]
pub struct Program {
    program: PathBuf,
    arguments: Vec<PathBuf>,
    /// The SDK's package and its version.
    pub package: String,
}

impl Program {
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        command
    }
}

/// Whether this machine can run a program.
#[derive(Clone, Debug)]
pub enum Readiness {
    Ready(Program),
    /// What is missing, for people.
    LeftOut(String),
}

/// Fetches what the SDK's program needs into `target`.
///
/// A missing language or package is not a failure of ours: it is said and left out,
/// and whoever runs this on a continuous-integration machine makes it a failure.
pub fn prepare(sdk: Sdk, root: &Path, target: &Path) -> Readiness {
    let source = root.join("tests/conformance").join(sdk.folder());
    let prepared = match sdk {
        Sdk::Python => prepare_python(&source, target),
        Sdk::Node => prepare_node(&source, &target.join("node")),
        Sdk::Rust => prepare_rust(&source, &target.join("rust")),
    };
    match prepared {
        Ok(program) => Readiness::Ready(program),
        Err(error) => Readiness::LeftOut(format!("the {} SDK: {error:#}", sdk.language())),
    }
}

fn prepare_python(source: &Path, target: &Path) -> Result<Program> {
    let requirements = source.join("requirements.txt");
    let python = virtual_environment(&target.join("python"), &requirements)?;
    let package = python_package(&std::fs::read_to_string(&requirements)?)?;
    Ok(Program { program: python, arguments: vec![source.join("conformance.py")], package })
}

/// A Python with the packages of a requirements file; gives back its interpreter.
pub fn virtual_environment(folder: &Path, requirements: &Path) -> Result<PathBuf> {
    let version = tool_version("python3")?;
    let python = folder.join("bin/python");
    let wanted = format!("{version}\n{}", std::fs::read_to_string(requirements)?);
    once(folder, &wanted, || {
        quiet(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements);
        quiet(&mut pip)
    })?;
    Ok(python)
}

fn prepare_node(source: &Path, folder: &Path) -> Result<Program> {
    let version = tool_version("node")?;
    tool_version("npm")?;
    std::fs::create_dir_all(folder)?;
    for name in ["package.json", "package-lock.json", "conformance.mjs"] {
        std::fs::copy(source.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    let lock = std::fs::read_to_string(source.join("package-lock.json"))?;
    once(folder, &format!("{version}\n{lock}"), || {
        let mut npm = Command::new("npm");
        quiet(npm.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(folder))
    })?;
    let package = node_package(&std::fs::read_to_string(source.join("package.json"))?)?;
    let arguments = vec![folder.join("conformance.mjs")];
    Ok(Program { program: PathBuf::from("node"), arguments, package })
}

/// Cargo does the fetching; its own target folder keeps the SDK's build apart from ours.
fn prepare_rust(source: &Path, folder: &Path) -> Result<Program> {
    let manifest = std::fs::read_to_string(source.join("Cargo.toml"))?;
    Cargo::new(source, &["build", "--locked", "--target-dir"]).arg(folder).run()?;
    let program = folder.join("debug/conformance");
    Ok(Program { program, arguments: Vec::new(), package: rust_package(&manifest)? })
}

/// Does the work unless it was done before for the same `wanted`.
pub(crate) fn once(folder: &Path, wanted: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join("prepared-for");
    if std::fs::read_to_string(&stamp).is_ok_and(|done| done == wanted) {
        return Ok(());
    }
    work()?;
    Ok(std::fs::write(stamp, wanted)?)
}

/// What `TOOL --version` prints; an error says that the machine has no such tool.
fn tool_version(tool: &str) -> Result<String> {
    let output = Command::new(tool).arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("there is no {tool} on this machine"))?;
    ensure!(output.status.success(), "there is no working {tool} on this machine");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs to the end in silence; what it printed is part of the error.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {shown}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let cause = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    ensure!(output.status.success(), "{shown} ended with {}: {cause}", output.status);
    Ok(())
}

/// `azure-cosmos==4.17.1` is the first line, and the one that matters.
fn python_package(requirements: &str) -> Result<String> {
    let first = requirements.lines().next().unwrap_or_default();
    let (name, version) = first.split_once("==").context("the SDK needs an exact version")?;
    Ok(format!("{name} {version}"))
}

fn node_package(manifest: &str) -> Result<String> {
    let manifest: serde_json::Value = serde_json::from_str(manifest)?;
    let dependencies = manifest.get("dependencies").and_then(|value| value.as_object());
    let (name, version) = dependencies.into_iter().flatten().next().context("no dependency")?;
    Ok(format!("{name} {}", version.as_str().context("a version is a text")?))
}

/// The exact version that a manifest asks for of the SDK.
fn rust_package(manifest: &str) -> Result<String> {
    const NAME: &str = "azure_data_cosmos";
    let manifest: toml::Table = manifest.parse()?;
    let wanted = manifest.get("dependencies").and_then(|of| of.get(NAME)?.get("version")?.as_str());
    let version = wanted.and_then(|wanted| wanted.strip_prefix('='));
    Ok(format!("{NAME} {}", version.context("the SDK needs an exact version")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_named_with_their_version() {
        let requirements = "azure-cosmos==4.17.1\naiohttp==3.*\n";
        assert_eq!(python_package(requirements).unwrap(), "azure-cosmos 4.17.1");
        assert!(python_package("azure-cosmos\n").is_err());
        let exact = "[dependencies]\nazure_data_cosmos = { version = \"=1.0.0\" }\n";
        assert_eq!(rust_package(exact).unwrap(), "azure_data_cosmos 1.0.0");
        assert!(rust_package(&exact.replace("\"=", "\"")).is_err());
        let manifest = r#"{"dependencies":{"@azure/cosmos":"4.10.1"}}"#;
        assert_eq!(node_package(manifest).unwrap(), "@azure/cosmos 4.10.1");
    }

    #[test]
    fn a_missing_tool_is_named() {
        let error = tool_version("no-such-tool-anywhere").unwrap_err();
        assert_eq!(error.to_string(), "there is no no-such-tool-anywhere on this machine");
    }
}
