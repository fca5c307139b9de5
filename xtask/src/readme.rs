//! The README's own programs and commands, run as they are on the page.
//!
//! Code that a newcomer copies must work, so it is not copied into a test but taken
//! from the page. One thing is changed: the port, since 8081 may be taken where tests
//! run. The block after a program shows what it prints.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::conformance::server::{Scheme, Server};
use crate::conformance::{Program, Sdk, Trust};
use crate::run;

/// The page, from the repository's root.
pub const PATH: &str = "README.md";
/// The port on the page.
const PORT: &str = ":8081";
/// A first build of a program takes longest.
const EXAMPLE_SECS_MAX: u64 = 300;

/// A program on the page and what it prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    pub code: String,
    pub output: String,
}

/// The program in a language, which is the word after its fence.
pub fn example(page: &str, language: &str) -> Result<Example> {
    let mut blocks = blocks(page).into_iter().skip_while(|block| block.language != language);
    let code = blocks.next().with_context(|| format!("no program in {language} on the page"))?;
    let output = blocks.next().filter(|block| block.language == "text");
    let output = output.with_context(|| format!("no output after the program in {language}"))?;
    Ok(Example { code: code.text, output: output.text })
}

/// Runs a language's program against a server and compares what it prints.
pub fn run_example(page: &str, sdk: Sdk, program: &Program, server: &Server) -> Result<()> {
    let (language, file) = place(sdk);
    let example = example(page, language)?;
    let trust = Trust::new(sdk, &server.export_certificate()?)?;
    let code = at_port_of(&example.code, server)?;
    let mut command = program.example(file, &code, &trust)?;
    let log = server.folder.join("example.log");
    let printed = run::bounded(&mut command, &log, Duration::from_secs(EXAMPLE_SECS_MAX))?;
    ensure!(printed == example.output, "it prints {printed:?} instead of {:?}", example.output);
    Ok(())
}

/// The word after the fence, and the file for such a program.
fn place(sdk: Sdk) -> (&'static str, &'static str) {
    match sdk {
        Sdk::Python => ("python", "first.py"),
        Sdk::Node => ("javascript", "first.mjs"),
        Sdk::Go => ("go", "first.go"),
        Sdk::Java => ("java", "First.java"),
        Sdk::Rust => ("rust", "src/main.rs"),
        Sdk::Dotnet => ("csharp", "Program.cs"),
    }
}

/// Runs the page's commands that fetch the certificate; each must fetch the right one.
///
/// Returns what this machine cannot run.
pub fn run_certificate_commands(page: &str, server: &Server) -> Result<Vec<String>> {
    let expected = std::fs::read(server.export_certificate()?)?;
    let mut left_out = Vec::new();
    let commands = certificate_commands(page);
    ensure!(commands.len() == 2, "{} commands on the page fetch the certificate", commands.len());
    for command in commands {
        if command.starts_with("curl") && Command::new("curl").arg("--version").output().is_err() {
            left_out.push("a command of the README: there is no curl on this machine".to_owned());
            continue;
        }
        let fetched = server.folder.join("orrery.pem");
        run_command(&command, server).with_context(|| format!("`{command}`"))?;
        ensure!(std::fs::read(&fetched)? == expected, "`{command}` fetches something else");
        std::fs::remove_file(fetched)?;
    }
    Ok(left_out)
}

fn certificate_commands(page: &str) -> Vec<String> {
    let shell = blocks(page).into_iter().filter(|block| block.language == "sh");
    let lines = shell.flat_map(|block| block.text.lines().map(str::to_owned).collect::<Vec<_>>());
    lines.filter(|line| line.contains("orrery.pem")).collect()
}

/// Runs a line in the server's folder, with the binary instead of cargo.
fn run_command(line: &str, server: &Server) -> Result<()> {
    let binary = format!("'{}'", server.binary.display());
    let line = at_port_of(line, server)?.replace("cargo run --release --", &binary);
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(&server.folder);
    shell.env("ORRERY_DATA", server.folder.join("data"));
    let output = shell.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "it ended with {}: {said}", output.status);
    Ok(())
}

/// The flags in the page's table must be those that the program names.
pub fn check_flags(page: &str, binary: &Path) -> Result<()> {
    let output = Command::new(binary).args(["serve", "--help"]).output()?;
    let help = String::from_utf8(output.stdout)?;
    let (of_page, of_program) = (flags_of_page(page), flags_of_help(&help));
    ensure!(of_page == of_program, "the page has {of_page:?}, the program {of_program:?}");
    Ok(())
}

fn flags_of_page(page: &str) -> Vec<String> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `--"));
    sorted(rows.map(first_word))
}

/// Every option is on a line that begins with it, or with its letter before it.
fn flags_of_help(help: &str) -> Vec<String> {
    let named = help.lines().filter_map(|line| {
        let line = line.trim_start();
        let (letter, flag) = line.split_once("--")?;
        (letter.is_empty() || letter.starts_with('-')).then(|| first_word(flag))
    });
    sorted(named.filter(|flag| !["help", "version"].contains(&flag.as_str())))
}

fn first_word(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_ascii_alphabetic() || *letter == '-').collect()
}

fn sorted(flags: impl Iterator<Item = String>) -> Vec<String> {
    let mut flags: Vec<String> = flags.collect();
    flags.sort();
    flags
}

fn at_port_of(text: &str, server: &Server) -> Result<String> {
    let endpoint = server.endpoint(Scheme::Http).trim_end_matches('/');
    let (_, port) = endpoint.rsplit_once(':').context("an endpoint has a port")?;
    Ok(text.replace(PORT, &format!(":{port}")))
}

/// The text between two fences.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Block {
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in page.lines() {
        match (line.strip_prefix("```"), blocks.last_mut()) {
            (Some(language), _) if !open => {
                blocks.push(Block { language: language.to_owned(), text: String::new() });
                open = true;
            }
            (Some(_), _) => open = false,
            (None, Some(block)) if open => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, _) => {}
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo;

    const PAGE: &str = "words\n```sh\nrun it\n```\n```python\nprint(1)\nprint(2)\n```\nIt prints\n\
                        ```text\n1\n2\n```\n```go\nmain\n```\n```sh\nmore\n```\n";

    #[test]
    fn a_program_is_followed_by_what_it_prints() {
        let found = example(PAGE, "python").unwrap();
        let expected = Example { code: "print(1)\nprint(2)\n".into(), output: "1\n2\n".into() };
        assert_eq!(found, expected);
        assert!(example(PAGE, "go").unwrap_err().to_string().starts_with("no output"));
        assert!(example(PAGE, "java").unwrap_err().to_string().starts_with("no program"));
    }

    #[test]
    fn flags_are_found_in_a_table_and_in_a_help_text() {
        let table = "| flag |\n|---|\n| `--log LEVEL` | x |\n| `--in-memory` | x |\n";
        let help =
            "      --in-memory     keeps nothing\n  -l, --log <LEVEL>  see --data\n  -h, --help\n";
        assert_eq!(flags_of_page(table), ["in-memory", "log"]);
        assert_eq!(flags_of_help(help), ["in-memory", "log"]);
    }

    /// What can be checked without an SDK: every program is there, with its output, and
    /// names the port that tests replace.
    #[test]
    fn the_page_has_a_program_for_every_sdk() {
        let page = std::fs::read_to_string(repo::root().join(PATH)).unwrap();
        for sdk in Sdk::ALL {
            let example = example(&page, place(sdk).0).unwrap();
            assert!(example.code.contains(PORT), "{}", sdk.language());
            assert!(!example.output.trim().is_empty(), "{}", sdk.language());
        }
        assert_eq!(certificate_commands(&page).len(), 2);
    }
}
