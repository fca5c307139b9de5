//! Flags, variables and the file, and what is refused at the start.

use std::process::Command;

use serde_json::Value;

use crate::client::{READ_ACCOUNT, connect, get, send_signed};
use crate::program::{Program, command, folder, run, text};

const OWN_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

fn refusal(command: &mut Command) -> String {
    let output = run(command);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(output.stdout.is_empty());
    text(&output.stderr)
}

#[test]
fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
    let (folder, _) = folder();
    let file = folder.path().join("orrery.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\ndata = \"by-file\"\njson = true\n").unwrap();
    let data = |arguments: &[&str], variable: Option<&str>| {
        let mut command = command(folder.path());
        command.arg("--config").arg(&file).args(arguments);
        if let Some(value) = variable {
            command.env("ORRERY_DATA", value);
        }
        Program::start_as(&mut command).ready["data"].clone()
    };
    assert_eq!(data(&[], None), "by-file");
    assert_eq!(data(&[], Some("by-variable")), "by-variable");
    assert_eq!(data(&["--data", "by-flag"], Some("by-variable")), "by-flag");
    assert_eq!(data(&["--in-memory"], Some("by-variable")), Value::Null);
    assert!(folder.path().join("by-flag/store").is_dir(), "it is created when missing");
}

#[test]
fn the_file_can_be_named_by_a_variable() {
    let (folder, _) = folder();
    let file = folder.path().join("orrery.toml");
    std::fs::write(&file, "listen = \"127.0.0.1:0\"\nin-memory = true\njson = true\n").unwrap();
    let program = Program::start_as(command(folder.path()).env("ORRERY_CONFIG", &file));
    assert_eq!(program.ready["data"], Value::Null);
}

#[test]
fn mistakes_in_settings_are_named() {
    let (folder, _) = folder();
    let file = folder.path().join("orrery.toml");
    let with_file = |content: &str| {
        std::fs::write(&file, content).unwrap();
        refusal(command(folder.path()).arg("--config").arg(&file))
    };
    let error = with_file("prot = 8081");
    assert!(error.contains("orrery.toml is not valid") && error.contains("`prot`"), "{error}");
    assert!(with_file("listen = \"here\"").contains("'here' is not an address"));
    assert!(with_file("in-memory = \"yes\"").contains("invalid type"));
    let error = refusal(command(folder.path()).args(["--config", "missing.toml"]));
    assert!(error.contains("missing.toml cannot be read"), "{error}");
    let error = refusal(command(folder.path()).env("ORRERY_DURABILITY", "maybe"));
    assert!(error.contains("ORRERY_DURABILITY is not valid"), "{error}");
    let error = refusal(command(folder.path()).args(["--in-memory", "--data", "d"]));
    assert!(error.contains("exclude each other"), "{error}");
    let error = refusal(command(folder.path()).args(["--in-memory", "--key", "short"]));
    assert!(error.contains("base64"), "{error}");
}

#[test]
fn the_well_known_key_is_for_loopback_only() {
    let (folder, _) = folder();
    let open = ["--in-memory", "--json", "--listen", "0.0.0.0:0"];
    let error = refusal(command(folder.path()).args(open));
    assert!(error.contains("can be reached from other machines"), "{error}");
    let offered = error.lines().find_map(|line| line.trim().strip_prefix("ORRERY_KEY="));
    let offered = offered.expect("the message offers a key");
    for key in [offered, OWN_KEY] {
        let program = Program::start_as(command(folder.path()).args(open).env("ORRERY_KEY", key));
        let mut stream = connect(program.address());
        assert_eq!(send_signed(&mut stream, key, READ_ACCOUNT, "", "").status, 200);
        let known = wire_cosmos::EMULATOR_KEY;
        assert_eq!(send_signed(&mut stream, known, READ_ACCOUNT, "", "").status, 401);
    }
}

#[test]
fn the_ready_line_is_all_a_program_needs() {
    let program = Program::in_memory();
    let address = program.address();
    assert_eq!(program.ready["event"], "ready");
    assert_eq!(program.ready["endpoint"], format!("http://{address}/"));
    assert_eq!(program.ready["tlsEndpoint"], format!("https://{address}/"));
    let key = program.ready["key"].as_str().unwrap();
    let connection = format!("AccountEndpoint=http://{address}/;AccountKey={key};");
    assert_eq!(program.ready["connectionString"], connection);
    let reply = send_signed(&mut connect(address), key, READ_ACCOUNT, "", "");
    assert_eq!(reply.status, 200);
}

#[test]
fn a_taken_port_and_a_taken_folder_are_refused_in_words() {
    let (folder, data) = folder();
    let data = data.display().to_string();
    let program = Program::start(folder.path(), &["--data", &data]);
    let error = refusal(command(folder.path()).args(["--listen", "127.0.0.1:0", "--data", &data]));
    let holder = format!("is in use by process {}", program.ready["pid"]);
    assert!(error.contains(&holder), "{error}");
    let address = program.address().to_string();
    let error = refusal(command(folder.path()).args(["--in-memory", "--listen", &address]));
    assert!(error.contains(&format!("cannot listen on {address}")), "{error}");
    assert!(error.contains("choose another port"), "{error}");
    let error = refusal(command(folder.path()).args(["check", "--data", &data]));
    assert!(error.contains("open elsewhere"), "{error}");
    assert_eq!(get(&mut connect(program.address()), "/_orrery/ready").status, 200);
}

#[test]
fn a_folder_with_other_things_in_it_is_left_alone() {
    let (folder, data) = folder();
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("thesis.tex"), "years of work").unwrap();
    let error = refusal(command(folder.path()).arg("--data").arg(&data));
    assert!(error.contains("holds other files"), "{error}");
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
}

#[test]
fn help_says_what_there_is() {
    let (folder, _) = folder();
    let help = text(&run(command(folder.path()).arg("--help")).stdout);
    for word in ["serve", "cert", "check", "bench", "--listen", "--data", "--in-memory", "--key"] {
        assert!(help.contains(word), "{word} is missing in\n{help}");
    }
    let serve = text(&run(command(folder.path()).args(["serve", "--help"])).stdout);
    for flag in ["--durability", "--config", "--json", "--log", "ORRERY_"] {
        assert!(serve.contains(flag), "{flag} is missing in\n{serve}");
    }
}
