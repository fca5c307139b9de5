use super::*;
use crate::repo::RepoFile;

const LAYERS: &str = r#"
[crates.model]
layer = 0
must_not_know = "IO"

[crates.storage]
layer = 1
must_not_know = "documents"

[crates.partition]
layer = 2
must_not_know = "network"
uses = ["model", "storage"]

[crates.testkit]
dev = true
must_not_know = "production"
uses = ["partition"]

[[restricted]]
libraries = ["fjall"]
crates = ["storage"]
tests_too = true
reason = "behind the door"

[[restricted]]
libraries = ["tokio"]
from_layer = 2
reason = "synchronous core"
"#;

const ROOT: &str = "[workspace.dependencies]\nengine = { version = \"3\", package = \"fjall\" }\n";

/// Every crate as the architecture wants it, with one manifest replaced.
fn check_with(replaced: &str, dependencies: &str) -> Vec<String> {
    let mut files = vec![RepoFile::made_up("Cargo.toml", ROOT)];
    let mut sources = Vec::new();
    let layers = Layers::parse(LAYERS).unwrap();
    let mut names: BTreeSet<&str> = layers.crates.keys().map(String::as_str).collect();
    names.insert(replaced);
    for name in names {
        let lines = if name == replaced { dependencies } else { "" };
        let text = format!("[package]\nname = \"{name}\"\n{lines}");
        files.push(RepoFile::made_up(&format!("crates/{name}/Cargo.toml"), &text));
        let door = layers.crates.get(name).map_or("", |layer| &layer.must_not_know);
        let uses = "use {model::a, storage::b, partition::c, testkit::d};";
        let text = format!("//! A crate.\n//! Must not know: {door}.\n{uses}\n");
        sources.push(Source::new(format!("crates/{name}/src/lib.rs"), text));
    }
    let workspace = Workspace::read(&files).unwrap();
    let mut findings = workspace.findings.clone();
    findings.extend(check(&layers, &workspace, &sources));
    findings.iter().map(Finding::to_string).collect()
}

#[track_caller]
fn assert_reported(findings: &[String], expected: &str) {
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings.iter().any(|finding| finding.contains(expected)), "{findings:?}");
}

#[test]
fn allowed_edges_pass() {
    let allowed = "[dependencies]\nmodel.workspace = true\nstorage.workspace = true\n\
                   tokio.workspace = true\n[dev-dependencies]\ntestkit.workspace = true\n";
    assert_eq!(check_with("partition", allowed), Vec::<String>::new());
}

#[test]
fn an_upward_arrow_is_reported() {
    let findings = check_with("storage", "[dependencies]\npartition.workspace = true\n");
    assert_reported(
        &findings,
        "crates/storage/Cargo.toml: `storage` must not depend on `partition`",
    );
}

#[test]
fn an_edge_hidden_by_platform_or_name_is_reported() {
    let by_platform = "[target.'cfg(unix)'.build-dependencies]\nmodel.workspace = true\n";
    let findings = check_with("storage", by_platform);
    assert_reported(&findings, "must not depend on `model` (build-dependencies)");
    let by_name = "[dependencies]\nm = { workspace = true, package = \"model\" }\n";
    assert_reported(&check_with("storage", by_name), "must not depend on `model`");
}

#[test]
fn a_test_crate_is_for_tests_only() {
    let findings = check_with("storage", "[dependencies]\ntestkit.workspace = true\n");
    assert_reported(&findings, "must not depend on `testkit` (dependencies)");
    let findings = check_with("storage", "[dev-dependencies]\npartition.workspace = true\n");
    assert_reported(&findings, "must not depend on `partition` (dev-dependencies)");
}

#[test]
fn a_restricted_library_is_reported() {
    let findings = check_with("model", "[dependencies]\ntokio.workspace = true\n");
    assert_reported(&findings, "`model` must not use `tokio`: synchronous core");
    let renamed = check_with("partition", "[dev-dependencies]\nengine.workspace = true\n");
    assert_reported(&renamed, "`partition` must not use `fjall`: behind the door");
    assert_eq!(check_with("model", "[dev-dependencies]\ntokio.workspace = true\n").len(), 0);
}

#[test]
fn a_version_outside_the_root_is_reported() {
    let findings = check_with("model", "[dependencies]\nbytes = \"1\"\n");
    assert_reported(&findings, "`bytes` needs `workspace = true`");
}

#[test]
fn an_unknown_crate_is_reported() {
    assert_reported(&check_with("common", ""), "crate `common` is missing");
}

#[test]
fn an_edge_that_nobody_uses_is_reported() {
    let layers = Layers::parse(LAYERS).unwrap();
    let text = "[package]\nname = \"partition\"\n[dependencies]\nmodel.workspace = true\n";
    let files = [
        RepoFile::made_up("Cargo.toml", ROOT),
        RepoFile::made_up("crates/partition/Cargo.toml", text),
    ];
    let workspace = Workspace::read(&files).unwrap();
    let source =
        Source::new("crates/partition/src/lib.rs", "// model::a\nfn models(model: u8) {}\n");
    let findings = check_used(&layers, &workspace.manifests[0], &[source]);
    assert_eq!(findings[0].message, "`partition` depends on `model` and never uses it");
}

#[test]
fn a_door_without_its_sentence_is_reported() {
    let layers = Layers::parse(LAYERS).unwrap();
    let manifest = Manifest {
        path: "crates/model/Cargo.toml".to_owned(),
        name: "model".to_owned(),
        dependencies: Vec::new(),
    };
    let check = |text: &str| {
        check_door(
            &layers.crates["model"],
            &manifest,
            &[Source::new("crates/model/src/lib.rs", text)],
        )
    };
    assert_eq!(check("//! Must not know: IO.\n"), []);
    assert_eq!(check("//! Must not know:\n//! IO.\n"), []);
    assert_eq!(check("//! Must not know: HTTP.\n").len(), 1);
    assert_eq!(check("// Must not know: IO.\n").len(), 1);
}

#[test]
fn the_file_itself_is_held_to_its_own_rules() {
    let bad = "[crates.a]\nlayer = 1\nmust_not_know = \"x\"\nuses = [\"b\", \"c\"]\n\
               [crates.b]\nlayer = 1\nmust_not_know = \"y\"\n\
               [crates.d]\nmust_not_know = \"z\"\n";
    let findings = check_layers(&Layers::parse(bad).unwrap(), &Workspace::default());
    let all =
        findings.iter().map(|finding| finding.message.as_str()).collect::<Vec<_>>().join("\n");
    assert!(all.contains("`a` uses `b`, which is not on a lower layer"), "{all}");
    assert!(all.contains("`a` uses `c`, which is not a crate here"), "{all}");
    assert!(all.contains("`d` needs either a layer or `dev = true`"), "{all}");
    assert!(all.contains("there is no crate `d`"), "{all}");
}
