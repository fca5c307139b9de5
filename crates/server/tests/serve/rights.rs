//! Who may read a data folder, and what a failed start leaves of it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;

use crate::client::{connect, create_database};
use crate::program::{Program, command, folder, run, text};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Everything in a folder that others could use.
fn open_to_others(folder: &Path) -> Vec<String> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it is there").flatten() {
        let (path, is_folder) = (entry.path(), entry.file_type().expect("it has one").is_dir());
        if mode(&path) != if is_folder { 0o700 } else { 0o600 } {
            open.push(format!("{:o} {}", mode(&path), path.display()));
        }
        if is_folder {
            open.extend(open_to_others(&path));
        }
    }
    open
}

#[test]
fn a_data_folder_is_for_its_owner_only() {
    let (folder, data) = folder();
    let server = Program::start(folder.path(), &["--data", &data.display().to_string()]);
    assert_eq!(create_database(&mut connect(server.address()), "d").status, 201);
    assert_eq!(open_to_others(&data), Vec::<String>::new());
    assert_eq!(mode(&data), 0o700);
    server.signal(Signal::TERM);
    assert!(server.wait().0.success());
    assert_eq!(open_to_others(&data), Vec::<String>::new());
}

#[test]
fn a_folder_that_is_open_to_others_is_closed() {
    let (folder, data) = folder();
    std::fs::create_dir(&data).unwrap();
    std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Program::start(folder.path(), &["--data", &data.display().to_string()]);
    assert_eq!(mode(&data), 0o700);
    server.kill();
}

#[test]
fn a_start_that_fails_leaves_no_folder_behind() {
    let (folder, data) = folder();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let start = |data: &Path| {
        let mut command = command(folder.path());
        let output = run(command.args(["--listen", &address, "--data"]).arg(data));
        assert!(!output.status.success());
        text(&output.stderr)
    };
    let errors = start(&data.join("deep").join("er"));
    assert!(errors.contains(&address), "{errors}");
    assert!(!data.exists(), "neither the folder nor those around it");
    std::fs::create_dir(&data).unwrap();
    start(&data);
    assert!(data.exists(), "it was there before");
    // And what was left in it does not prevent the next start.
    Program::start(folder.path(), &["--data", &data.display().to_string()]).kill();
}
