//! The repository follows its own rules, however the tests are run.

#[test]
fn the_repository_is_tidy() {
    let verdict = xtask::tidy::check_repository(&xtask::repo::root()).unwrap();
    let findings: Vec<String> = verdict.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    assert!(verdict.functions.count > 0, "no function was found: the reader is broken");
}
