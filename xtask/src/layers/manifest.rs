//! Cargo manifests, as far as dependencies go.

use std::fmt;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::repo::RepoFile;
use crate::report::Finding;

/// All manifests of the workspace's crates.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    pub manifests: Vec<Manifest>,
    /// What is wrong with the manifests themselves.
    pub findings: Vec<Finding>,
}

/// One crate's manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Path from the repository's root.
    pub path: String,
    pub name: String,
    pub dependencies: Vec<Dependency>,
}

/// One line of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependency {
    /// The package's real name, also where the manifest renames it.
    pub package: String,
    pub section: Section,
}

/// Where a dependency is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Normal,
    Build,
    Dev,
}

impl Section {
    const ALL: [Section; 3] = [Section::Normal, Section::Build, Section::Dev];

    fn key(self) -> &'static str {
        match self {
            Section::Normal => "dependencies",
            Section::Build => "build-dependencies",
            Section::Dev => "dev-dependencies",
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

impl Manifest {
    /// The crate's folder from the repository's root.
    pub fn folder(&self) -> &str {
        self.path.strip_suffix("/Cargo.toml").unwrap_or(&self.path)
    }

    /// Whether any section names the package.
    pub fn depends_on(&self, package: &str) -> bool {
        self.dependencies.iter().any(|dependency| dependency.package == package)
    }
}

impl Workspace {
    /// Reads the root manifest and those of all crates.
    pub fn read(files: &[RepoFile]) -> Result<Workspace> {
        let mut workspace = Workspace::default();
        let root = files.iter().find(|file| file.path == "Cargo.toml");
        let root = parse(root.context("there is no Cargo.toml at the root")?)?;
        let shared = table_at(&root, &["workspace", "dependencies"]).cloned().unwrap_or_default();
        for file in files.iter().filter(|file| is_member(&file.path)) {
            workspace.add(&file.path, &parse(file)?, &shared)?;
        }
        Ok(workspace)
    }

    fn add(&mut self, path: &str, manifest: &Table, shared: &Table) -> Result<()> {
        let name = table_at(manifest, &["package"]).and_then(|package| package.get("name"));
        let name =
            name.and_then(Value::as_str).with_context(|| format!("{path} names no package"))?;
        let mut dependencies = Vec::new();
        for (section, key, value) in declared(manifest) {
            if value.get("workspace").is_none() {
                let message =
                    format!("`{key}` needs `workspace = true`: versions live in the root");
                self.findings.push(Finding::file(path, message));
            }
            let package = renamed(value).or_else(|| renamed(shared.get(key)?)).unwrap_or(key);
            dependencies.push(Dependency { package: package.to_owned(), section });
        }
        let (path, name) = (path.to_owned(), name.to_owned());
        self.manifests.push(Manifest { path, name, dependencies });
        Ok(())
    }
}

/// Members lie one level deep under `crates/`; `xtask` stands beside it.
fn is_member(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(parts[..], ["crates", _, "Cargo.toml"] | ["xtask", "Cargo.toml"])
}

fn parse(file: &RepoFile) -> Result<Table> {
    let text = file.text.as_deref().unwrap_or_default();
    text.parse().with_context(|| format!("cannot read {}", file.path))
}

/// Every dependency of a manifest, also of its platform-specific tables.
fn declared(manifest: &Table) -> Vec<(Section, &str, &Value)> {
    let platforms = table_at(manifest, &["target"]).into_iter().flat_map(Table::values);
    let tables = std::iter::once(manifest).chain(platforms.filter_map(Value::as_table));
    let mut declared = Vec::new();
    for table in tables {
        for section in Section::ALL {
            let lines = table_at(table, &[section.key()]).into_iter().flatten();
            declared.extend(lines.map(|(key, value)| (section, key.as_str(), value)));
        }
    }
    declared
}

fn renamed(value: &Value) -> Option<&str> {
    value.get("package")?.as_str()
}

fn table_at<'a>(table: &'a Table, path: &[&str]) -> Option<&'a Table> {
    path.iter().try_fold(table, |table, key| table.get(*key)?.as_table())
}
