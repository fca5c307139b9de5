//! The .NET SDK's program: a project like any other, built into the target folder.
//!
//! A `dotnet` of the machine is used with the package sources that it is configured for. Where
//! there is none, the shared data may have one, with the packages and without a registry.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::prepare::{Program, once, quiet, tool_version};

/// The first version that builds the project.
const VERSION_MIN: u32 = 10;

/// What must hold wherever `dotnet` comes from: the SDK contacts no address outside this
/// machine, and no process of a build outlives it.
const VARIABLES: [(&str, &str); 6] = [
    ("COSMOS_DISABLE_IMDS_ACCESS", "true"),
    ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
    ("DOTNET_CLI_USE_MSBUILD_SERVER", "0"),
    ("DOTNET_NOLOGO", "1"),
    ("MSBUILDDISABLENODEREUSE", "1"),
    ("UseSharedCompilation", "false"),
];

/// Packages of the project that a reader's first program does not need.
const OTHER_PACKAGES: [&str; 2] =
    ["Microsoft.Azure.DocumentDB.Core", "Microsoft.Azure.Cosmos.Table"];

/// A `dotnet`, and its environment variables.
struct Dotnet {
    program: PathBuf,
    version: String,
    variables: Vec<(OsString, OsString)>,
}

impl Dotnet {
    fn find(shared: &Path) -> Result<Dotnet> {
        let variables = VARIABLES.map(|(name, value)| (name.into(), value.into())).to_vec();
        match tool_version("dotnet") {
            Ok(version) if is_recent(&version) => {
                Ok(Dotnet { program: "dotnet".into(), version, variables })
            }
            Ok(_) | Err(_) => Dotnet::shared(&shared.join("dotnet/setup"), variables),
        }
    }

    /// The one that the shared data brings, unpacked by its own script.
    fn shared(setup: &Path, mut variables: Vec<(OsString, OsString)>) -> Result<Dotnet> {
        ensure!(setup.is_file(), "there is no dotnet {VERSION_MIN} or later on this machine");
        let mut shell = Command::new("bash");
        shell.args(["-c", "eval \"$(\"$0\")\" && env -0"]).arg(setup).stdin(Stdio::null());
        let output = shell.output().context("there is no bash on this machine")?;
        ensure!(output.status.success(), "the shared dotnet cannot be unpacked");
        let entries = output.stdout.split(|byte| *byte == 0).filter_map(|entry| {
            let at = entry.iter().position(|byte| *byte == b'=')?;
            let (name, value) = entry.split_at_checked(at)?;
            Some((text(name), text(value.get(1..)?)))
        });
        let set =
            |(name, value): &(OsString, OsString)| std::env::var_os(name).as_ref() != Some(value);
        variables.splice(0..0, entries.filter(set));
        let root = variables.iter().find(|(name, _)| name == "DOTNET_ROOT");
        let (_, root) = root.context("the shared dotnet does not say where it is")?;
        let program = Path::new(root).join("dotnet");
        Ok(Dotnet { program, version: format!("shared, {}", setup.display()), variables })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).envs(self.variables.clone());
        command
    }
}

fn text(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn is_recent(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= VERSION_MIN)
}

/// Builds the program, and prepares a project for the README's.
pub(super) fn prepare(source: &Path, shared: &Path, folder: &Path) -> Result<Program> {
    let dotnet = Dotnet::find(shared)?;
    let project = source.join("Conformance.csproj");
    let manifest = std::fs::read_to_string(&project)?;
    let (built, example) = (folder.join("built"), folder.join("example"));
    for folder in [&built, &example] {
        std::fs::create_dir_all(folder)?;
    }
    once(&built, &format!("{}\n{manifest}\n{}", dotnet.version, sources(source)?), || {
        let mut build =
            dotnet.command(&["build", "--configuration", "Release", "--verbosity", "quiet"]);
        quiet(build.arg("--artifacts-path").arg(&built).arg(&project))
    })?;
    let example_project = example.join("Example.csproj");
    once(&example, &format!("{}\n{manifest}", dotnet.version), || {
        let needed = |line: &&str| !OTHER_PACKAGES.iter().any(|other| line.contains(other));
        let lines: Vec<&str> = manifest.lines().filter(needed).collect();
        std::fs::write(&example_project, lines.join("\n"))?;
        quiet(dotnet.command(&["restore", "--verbosity", "quiet"]).arg(&example_project))
    })?;
    let run = ["run", "--verbosity", "quiet", "--project"].map(OsString::from);
    let start: Vec<OsString> = vec![dotnet.program.clone().into()];
    Ok(Program {
        conformance: [&start[..], &[built.join("bin/Conformance/release/Conformance.dll").into()]]
            .concat(),
        example: [&start[..], &run[..], &[example_project.into(), "--".into()]].concat(),
        example_folder: example,
        package: package(&manifest)?,
        variables: dotnet.variables,
    })
}

/// The text of every source file, in the order of their names.
fn sources(folder: &Path) -> Result<String> {
    let entries = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<std::io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "cs"));
    paths.sort();
    Ok(paths.iter().map(std::fs::read_to_string).collect::<std::io::Result<String>>()?)
}

/// The SDK's own version; NuGet takes it literally or reports that it did not.
fn package(manifest: &str) -> Result<String> {
    const NAME: &str = "Microsoft.Azure.Cosmos";
    let (_, after) = manifest
        .split_once(&format!("Include=\"{NAME}\" Version=\""))
        .context("the project does not ask for the SDK")?;
    let (version, _) = after.split_once('"').context("a version has no end")?;
    Ok(format!("{NAME} {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_named_with_its_version() {
        let manifest = "<PackageReference Include=\"Microsoft.Azure.Cosmos\" Version=\"3.64.0\" />";
        assert_eq!(package(manifest).unwrap(), "Microsoft.Azure.Cosmos 3.64.0");
        assert!(package("<Project />").is_err());
    }

    #[test]
    fn old_versions_do_not_count() {
        for (version, recent) in
            [("10.0.401", true), ("11.0.100-preview.1", true), ("8.0.1", false), ("", false)]
        {
            assert_eq!(is_recent(version), recent, "{version}");
        }
    }

    #[test]
    fn without_any_dotnet_one_line_says_so() {
        let error = Dotnet::shared(Path::new("no/such/folder/setup"), Vec::new()).err().unwrap();
        assert_eq!(error.to_string(), "there is no dotnet 10 or later on this machine");
    }
}
