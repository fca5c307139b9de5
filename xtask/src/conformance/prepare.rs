//! What an SDK's program needs before it can run: its language and its packages.
//!
//! Packages go to the target folder, never into the tree or the system, and are
//! fetched again only when what asks for them changes. Where they come from is a
//! setting of the machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::trust::Trust;
use super::{Sdk, dotnet};
use crate::repo;
use crate::run::Cargo;

/// The goal that fetches packages, with its version: Maven would take another each year.
const COPY_DEPENDENCIES: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
/// The Java SDK requires TLS unless this is set.
const PLAIN_HTTP: &str = "-DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true";

/// A program of seconds does not amortise what the second compiler costs: half of all.
const QUICK_START: &str = "-XX:TieredStopAtLevel=1";

/// How to run what is written with an SDK.
#[derive(Clone, Debug)]
pub struct Program {
    /// Starts our program in `tests/conformance`.
    pub(super) conformance: Vec<OsString>,
    /// Starts a program of which only the source is given, at the end of this.
    pub(super) example: Vec<OsString>,
    /// Where such a source must lie to find the SDK.
    pub(super) example_folder: PathBuf,
    /// The SDK's package and its version.
    pub package: String,
    /// Environment variables of its language.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Program {
    /// Our program; its own arguments follow.
    pub fn conformance(&self, trust: &Trust) -> Command {
        self.start(&self.conformance, trust)
    }

    /// Another program, of which this is the source.
    pub fn example(&self, name: &str, source: &str, trust: &Trust) -> Result<Command> {
        let file = self.example_folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(&self.example_folder))?;
        std::fs::write(&file, source)?;
        let mut command = self.start(&self.example, trust);
        command.arg(file);
        Ok(command)
    }

    /// Options come before the program's arguments, variables beside it.
    fn start(&self, words: &[OsString], trust: &Trust) -> Command {
        let (program, arguments) = words.split_first().expect("every invocation names its program");
        let mut command = Command::new(program);
        command.args(&trust.options).args(arguments);
        command.envs(self.variables.clone()).envs(trust.variable.clone());
        command
    }
}

/// Words of a command, some of them paths.
macro_rules! words {
    ($($word:expr),+ $(,)?) => { vec![$(OsString::from($word)),+] };
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
/// A missing language or package is not a failure of ours: it is reported and skipped, and
/// on a continuous-integration machine the caller makes it a failure.
pub fn prepare(sdk: Sdk, root: &Path, target: &Path) -> Readiness {
    let source = root.join("tests/conformance").join(sdk.folder());
    let prepared = match sdk {
        Sdk::Python => prepare_python(&source, target),
        Sdk::Node => prepare_node(&source, &target.join("node")),
        Sdk::Go => prepare_go(&source, &target.join("go")),
        Sdk::Java => prepare_java(&source, &target.join("java")),
        Sdk::Rust => prepare_rust(&source, &target.join("rust")),
        Sdk::Dotnet => dotnet::prepare(&source, &repo::shared_data(root), &target.join("dotnet")),
    };
    match prepared {
        Ok(mut program) => {
            // What the programs of several SDKs share: scripts that they store and run, and the
            // identity provider that signs their tokens.
            for folder in ["scripts", "provider"] {
                let name = format!("ORRERY_{}", folder.to_uppercase());
                let path = root.join("tests/conformance").join(folder);
                program.variables.push((name.into(), path.into()));
            }
            Readiness::Ready(program)
        }
        Err(error) => Readiness::LeftOut(format!("the {} SDK: {error:#}", sdk.language())),
    }
}

fn prepare_python(source: &Path, target: &Path) -> Result<Program> {
    let requirements = source.join("requirements.txt");
    let folder = target.join("python");
    let python = virtual_environment(&folder, &requirements)?;
    // The program finds these beside its own.
    let mut older = std::fs::read_dir(source.join("older"))?;
    older.try_for_each(|file| -> Result<()> {
        let (file, mut name) = (file?.path(), OsString::from("python-"));
        name.push(file.file_stem().unwrap_or_default());
        virtual_environment(&target.join(name), &file).map(drop)
    })?;
    Ok(Program {
        // The program is several files; compiled ones do not belong into the tree.
        conformance: words![&python, "-B", source.join("conformance.py")],
        example: words![python],
        example_folder: folder,
        package: python_package(&std::fs::read_to_string(&requirements)?)?,
        variables: Vec::new(),
    })
}

/// A Python with the packages of a requirements file; returns its interpreter.
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
    let cases =
        ["bearer.mjs", "changes.mjs", "gauge.mjs", "order.mjs", "parity.mjs", "versions.mjs"];
    let program = ["conformance.mjs"].into_iter().chain(cases);
    for name in ["package.json", "package-lock.json"].into_iter().chain(program) {
        std::fs::copy(source.join(name), folder.join(name))
            .with_context(|| format!("cannot copy {name}"))?;
    }
    let lock = std::fs::read_to_string(source.join("package-lock.json"))?;
    once(folder, &format!("{version}\n{lock}"), || {
        let mut npm = Command::new("npm");
        quiet(npm.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(folder))
    })?;
    Ok(Program {
        conformance: words!["node", folder.join("conformance.mjs")],
        example: words!["node"],
        example_folder: folder.to_owned(),
        package: node_package(&std::fs::read_to_string(source.join("package.json"))?)?,
        variables: Vec::new(),
    })
}

/// Go does the fetching, and builds nothing that it has built before.
fn prepare_go(source: &Path, folder: &Path) -> Result<Program> {
    tool_says("go", "version")?;
    let program = folder.join("conformance");
    let mut build = Command::new("go");
    build.args(["build", "-buildvcs=false", "-o"]).arg(&program).arg(".").current_dir(source);
    quiet(&mut build)?;
    Ok(Program {
        conformance: words![program],
        // The module of our program names the SDK for both.
        example: words!["go", "run", "-C", source],
        example_folder: folder.join("example"),
        package: go_package(&std::fs::read_to_string(source.join("go.mod"))?)?,
        variables: Vec::new(),
    })
}

/// Maven does the fetching and no more: the program is a few files.
fn prepare_java(source: &Path, folder: &Path) -> Result<Program> {
    let version = tool_version("javac")?;
    tool_version("mvn")?;
    let pom = source.join("pom.xml");
    let cases = ["Changes", "Gauge", "Order", "Parity", "Versions"];
    let files = ["Conformance"].into_iter().chain(cases);
    let files: Vec<_> = files.map(|name| source.join(format!("{name}.java"))).collect();
    let texts = files.iter().map(std::fs::read_to_string).collect::<std::io::Result<String>>()?;
    let manifest = std::fs::read_to_string(&pom)?;
    let (libraries, classes) = (folder.join("lib"), folder.join("classes"));
    std::fs::create_dir_all(&libraries)?;
    once(&libraries, &format!("{version}\n{manifest}"), || {
        std::fs::remove_dir_all(&libraries)?;
        let mut into = OsString::from("-DoutputDirectory=");
        into.push(&libraries);
        let mut mvn = Command::new("mvn");
        quiet(mvn.args(["--quiet", "--batch-mode", COPY_DEPENDENCIES]).arg(into).arg("-f").arg(pom))
    })?;
    let (library_path, class_path) = java_paths(&libraries, &classes)?;
    std::fs::create_dir_all(&classes)?;
    once(&classes, &format!("{manifest}\n{texts}"), || {
        let mut javac = Command::new("javac");
        javac.args(["-encoding", "UTF-8", "-cp"]).arg(&library_path);
        quiet(javac.arg("-d").arg(&classes).args(&files))
    })?;
    Ok(Program {
        conformance: words!["java", QUICK_START, PLAIN_HTTP, "-cp", class_path, "Conformance"],
        example: words!["java", "-cp", library_path],
        example_folder: folder.join("example"),
        package: java_package(&manifest)?,
        variables: Vec::new(),
    })
}

/// The class paths of the libraries alone, and with the program before them.
fn java_paths(libraries: &Path, classes: &Path) -> Result<(OsString, OsString)> {
    let libraries = libraries.join("*");
    let both = std::env::join_paths([classes, libraries.as_path()]);
    Ok((libraries.into(), both.context("the target folder's name cannot stand in a class path")?))
}

/// Cargo does the fetching; its own target folder keeps the SDK's build apart from ours.
fn prepare_rust(source: &Path, folder: &Path) -> Result<Program> {
    Cargo::new(source, &["build", "--locked", "--target-dir"]).arg(folder).run()?;
    let example = folder.join("example");
    std::fs::create_dir_all(&example)?;
    for name in ["Cargo.toml", "Cargo.lock"] {
        let text = std::fs::read_to_string(source.join(name))?;
        let renamed = text.replace("name = \"conformance\"", "name = \"example\"");
        std::fs::write(example.join(name), renamed)?;
    }
    let manifest = example.join("Cargo.toml");
    let package = rust_package(&std::fs::read_to_string(&manifest)?)?;
    let quiet = ["cargo", "run", "--quiet", "--locked", "--target-dir"];
    let mut run: Vec<OsString> = quiet.map(OsString::from).into();
    run.extend(words![folder, "--manifest-path", manifest, "--"]);
    Ok(Program {
        conformance: words![folder.join("debug/conformance")],
        example: run,
        example_folder: example,
        package,
        variables: Vec::new(),
    })
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

pub(super) fn tool_version(tool: &str) -> Result<String> {
    tool_says(tool, "--version")
}

/// What a tool prints; an error says that the machine has no such tool.
fn tool_says(tool: &str, argument: &str) -> Result<String> {
    let output = Command::new(tool).arg(argument).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("there is no {tool} on this machine"))?;
    ensure!(output.status.success(), "there is no working {tool} on this machine");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs to completion in silence; what it printed is part of the error.
pub(crate) fn quiet(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {shown}"))?;
    // Some tools write to one stream what others write to the other.
    let said = if output.stderr.is_empty() { &output.stdout } else { &output.stderr };
    let said = String::from_utf8_lossy(said);
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

/// The version of the SDK that a module requires, which Go takes literally.
fn go_package(module: &str) -> Result<String> {
    const NAME: &str = "azcosmos";
    let wanted = module.lines().find_map(|line| line.split_once(&format!("/{NAME} v")));
    let (_, version) = wanted.context("the module does not ask for the SDK")?;
    Ok(format!("{NAME} {}", version.trim()))
}

/// The version beside the SDK's name; Maven takes it literally.
fn java_package(manifest: &str) -> Result<String> {
    const NAME: &str = "azure-cosmos";
    let (_, after) =
        manifest.split_once(&format!("<artifactId>{NAME}</artifactId>")).context("no SDK")?;
    let (_, version) = after.split_once("<version>").context("the SDK needs an exact version")?;
    let (version, _) = version.split_once('<').context("a version has no end")?;
    Ok(format!("{NAME} {version}"))
}

/// The exact version of the SDK that a manifest requires.
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
        let module = "require (\n\texample.com/azcore v1.21.0\n\texample.com/azcosmos v1.5.0\n)\n";
        assert_eq!(go_package(module).unwrap(), "azcosmos 1.5.0");
        let pom = "<artifactId>conformance</artifactId><version>1</version>\
                   <artifactId>azure-cosmos</artifactId>\n<version>4.81.0</version>";
        assert_eq!(java_package(pom).unwrap(), "azure-cosmos 4.81.0");
        let manifest = r#"{"dependencies":{"@azure/cosmos":"4.10.1"}}"#;
        assert_eq!(node_package(manifest).unwrap(), "@azure/cosmos 4.10.1");
    }

    #[test]
    fn a_missing_tool_is_named() {
        let error = tool_version("no-such-tool-anywhere").unwrap_err();
        assert_eq!(error.to_string(), "there is no no-such-tool-anywhere on this machine");
    }
}
