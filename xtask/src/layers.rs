//! Checks every crate against the architecture in `xtask/layers.toml`.
//!
//! The compiler already refuses a cycle, but it accepts an arrow that points up or past a
//! door. Here each manifest is compared with what the architecture allows: internal edges,
//! libraries that only some crates may use, and the sentence at each crate's door that says
//! what it must not know.

mod manifest;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

pub use manifest::{Manifest, Section, Workspace};

use crate::report::Finding;
use crate::source::{Source, words};

/// Where the architecture is written down.
pub const LAYERS_PATH: &str = "xtask/layers.toml";

/// A crate for tests that every other crate's tests may use, and so may other crates for tests.
const TEST_CRATE: &str = "testkit";

/// The architecture as data.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layers {
    pub crates: BTreeMap<String, Layer>,
    #[serde(default)]
    pub restricted: Vec<Restriction>,
}

/// One crate's position in the architecture.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layer {
    /// `None` for crates outside the layers.
    pub layer: Option<u8>,
    /// A crate for tests and habits, which does not ship.
    #[serde(default)]
    pub dev: bool,
    pub must_not_know: String,
    #[serde(default)]
    pub uses: BTreeSet<String>,
    #[serde(default)]
    pub dev_uses: BTreeSet<String>,
}

/// Libraries that only some crates may use.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Restriction {
    pub libraries: BTreeSet<String>,
    #[serde(default)]
    pub crates: BTreeSet<String>,
    pub from_layer: Option<u8>,
    #[serde(default)]
    pub tests_too: bool,
    pub reason: String,
}

impl Layers {
    pub fn parse(text: &str) -> Result<Layers> {
        toml::from_str(text).with_context(|| format!("cannot read {LAYERS_PATH}"))
    }
}

/// Everything that breaks the architecture.
pub fn check(layers: &Layers, workspace: &Workspace, sources: &[Source]) -> Vec<Finding> {
    let mut findings = check_layers(layers, workspace);
    for manifest in &workspace.manifests {
        match layers.crates.get(&manifest.name) {
            Some(layer) => {
                findings.extend(check_edges(layers, layer, manifest));
                findings.extend(check_restricted(layers, layer, manifest));
                findings.extend(check_used(layers, manifest, sources));
                findings.extend(check_door(layer, manifest, sources));
            }
            None => findings.push(Finding::file(
                &manifest.path,
                format!("crate `{}` is missing from {LAYERS_PATH}", manifest.name),
            )),
        }
    }
    findings
}

/// The file itself: every crate exists, every arrow points down.
fn check_layers(layers: &Layers, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |message: String| findings.push(Finding::file(LAYERS_PATH, message));
    for (name, layer) in &layers.crates {
        if !workspace.manifests.iter().any(|manifest| manifest.name == *name) {
            say(format!("there is no crate `{name}`"));
        }
        if layer.dev == layer.layer.is_some() {
            say(format!("`{name}` needs either a layer or `dev = true`"));
        }
        for used in &layer.uses {
            match layers.crates.get(used) {
                None => say(format!("`{name}` uses `{used}`, which is not a crate here")),
                Some(_) if layer.dev && used == TEST_CRATE => {}
                Some(below) if !points_down(layer, below) => {
                    say(format!("`{name}` uses `{used}`, which is not on a lower layer"));
                }
                Some(_) => {}
            }
        }
    }
    findings
}

/// Crates for tests stand above everything that ships.
fn points_down(from: &Layer, to: &Layer) -> bool {
    match (from.layer, to.layer) {
        (Some(from), Some(to)) => from > to,
        (None, Some(_)) => true,
        (_, None) => false,
    }
}

/// A manifest's dependencies on crates of ours.
fn check_edges(layers: &Layers, layer: &Layer, manifest: &Manifest) -> Vec<Finding> {
    let ours = manifest.dependencies.iter().filter(|d| layers.crates.contains_key(&d.package));
    let forbidden = ours.filter(|dependency| match dependency.section {
        Section::Normal | Section::Build => !layer.uses.contains(&dependency.package),
        Section::Dev => {
            let in_tests = layer.uses.contains(&dependency.package)
                || layer.dev_uses.contains(&dependency.package)
                || (dependency.package == TEST_CRATE && !layer.dev);
            !in_tests
        }
    });
    let message = |to: &str, section: Section| {
        format!("`{}` must not depend on `{to}` ({section}); see {LAYERS_PATH}", manifest.name)
    };
    forbidden.map(|d| Finding::file(&manifest.path, message(&d.package, d.section))).collect()
}

/// A manifest's dependencies on restricted libraries.
fn check_restricted(layers: &Layers, layer: &Layer, manifest: &Manifest) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in &layers.restricted {
        let by_layer =
            matches!((rule.from_layer, layer.layer), (Some(from), Some(on)) if on >= from);
        if by_layer || rule.crates.contains(&manifest.name) {
            continue;
        }
        let caught = manifest.dependencies.iter().filter(|dependency| {
            rule.libraries.contains(&dependency.package)
                && (rule.tests_too || dependency.section != Section::Dev)
        });
        findings.extend(caught.map(|dependency| {
            let library = &dependency.package;
            let message = format!("`{}` must not use `{library}`: {}", manifest.name, rule.reason);
            Finding::file(&manifest.path, message)
        }));
    }
    findings
}

/// A declared edge that no source uses is an edge that should not be there.
fn check_used(layers: &Layers, manifest: &Manifest, sources: &[Source]) -> Vec<Finding> {
    let ours = manifest.dependencies.iter().filter(|d| layers.crates.contains_key(&d.package));
    ours.filter(|dependency| {
        let ident = dependency.package.replace('-', "_");
        let mut own = sources.iter().filter(|s| s.crate_folder() == Some(manifest.folder()));
        !own.any(|source| names_crate(source.code(), &ident))
    })
    .map(|dependency| {
        let message =
            format!("`{}` depends on `{}` and never uses it", manifest.name, dependency.package);
        Finding::file(&manifest.path, message)
    })
    .collect()
}

/// Whether the code reaches into a crate: `name::`.
fn names_crate(code: &str, name: &str) -> bool {
    words(code).any(|(at, word)| {
        word == name && code.get(at + word.len()..).is_some_and(|after| after.starts_with("::"))
    })
}

/// The sentence at the door, which every reader of a crate sees first.
fn check_door(layer: &Layer, manifest: &Manifest, sources: &[Source]) -> Vec<Finding> {
    let door = |file: &str| {
        let path = format!("{}/src/{file}", manifest.folder());
        sources.iter().find(|source| source.path == path)
    };
    let Some(door) = door("lib.rs").or_else(|| door("main.rs")) else {
        return vec![Finding::file(&manifest.path, "the crate has no door: lib.rs or main.rs")];
    };
    let sentence = format!("Must not know: {}", layer.must_not_know);
    // The sentence may be wrapped over lines.
    if door.docs().join(" ").contains(&sentence) {
        return Vec::new();
    }
    vec![Finding::file(
        &door.path,
        format!("its `//!` must say \"{sentence}.\", as {LAYERS_PATH} does"),
    )]
}

#[cfg(test)]
mod tests;
