//! Starting, stopping, and what is there afterwards.

use crate::client::{connect, create_database, get, read_database};
use crate::program::{Program, command, folder, run, text};

#[cfg(unix)]
mod signals {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};

    use rustix::process::Signal;
    use wire_cosmos::EMULATOR_KEY;

    use super::*;
    use crate::client::{CREATE_DATABASE, read_reply, read_to_end};

    #[test]
    fn both_signals_end_it_cleanly_and_the_data_is_there() {
        let (folder, data) = folder();
        let data = data.display().to_string();
        for (round, signal) in [Signal::TERM, Signal::INT].into_iter().enumerate() {
            // Other load on the disk is not what is tested.
            let patient = ["--data", &data, "--slow-after", "600000"];
            let program = Program::start(folder.path(), &patient);
            let mut stream = connect(program.address());
            for earlier in 0..round {
                assert_eq!(read_database(&mut stream, &format!("db{earlier}")).status, 200);
            }
            assert_eq!(create_database(&mut stream, &format!("db{round}")).status, 201);
            program.signal(signal);
            let (status, errors) = program.wait();
            assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
            assert_eq!(read_to_end(&mut stream), "", "an idle connection is closed");
        }
    }

    /// Sends the head of a request and waits until the server asks for the body: from then
    /// on the request is in progress, however busy the machine is.
    fn begin_create(address: SocketAddr, body_bytes: usize) -> TcpStream {
        const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut stream = connect(address);
        let head = format!(
            "POST /dbs HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {body_bytes}\r\n{}\r\n",
            CREATE_DATABASE.headers(EMULATOR_KEY)
        );
        stream.write_all(head.as_bytes()).expect("the request goes out");
        let mut said = [0; CONTINUE.len()];
        stream.read_exact(&mut said).expect("an answer begins");
        assert_eq!(said, CONTINUE);
        stream
    }

    #[test]
    fn a_request_that_was_begun_is_finished() {
        let program = Program::in_memory();
        let address = program.address();
        let body = r#"{"id":"last"}"#;
        let mut stream = begin_create(address, body.len());
        program.signal(Signal::TERM);
        while TcpStream::connect(address).is_ok() {
            std::thread::yield_now();
        }
        stream.write_all(body.as_bytes()).unwrap();
        let reply = read_reply(&mut stream);
        assert_eq!((reply.status, reply.header("connection")), (201, Some("close")));
        assert_eq!(program.wait().0.code(), Some(0));
    }

    #[test]
    fn asking_twice_does_not_wait() {
        let program = Program::in_memory();
        let address = program.address();
        let _stuck = begin_create(address, 9);
        program.signal(Signal::TERM);
        while TcpStream::connect(address).is_ok() {
            std::thread::yield_now();
        }
        program.signal(Signal::TERM);
        let (status, errors) = program.wait();
        assert_eq!(status.code(), Some(0));
        assert!(errors.contains("asked twice"), "{errors}");
    }
}

#[test]
fn what_was_answered_survives_a_kill() {
    let (folder, data) = folder();
    let data = data.display().to_string();
    for round in 0..3 {
        let program = Program::start(folder.path(), &["--data", &data]);
        let mut stream = connect(program.address());
        for earlier in 0..round {
            assert_eq!(read_database(&mut stream, &format!("db{earlier}")).status, 200);
        }
        assert_eq!(create_database(&mut stream, &format!("db{round}")).status, 201);
        program.kill();
    }
    let checked = run(command(folder.path()).args(["check", "--data", &data]));
    assert!(checked.status.success(), "{}", text(&checked.stdout));
}

#[test]
fn a_first_start_that_was_cut_short_is_taken_up() {
    let (folder, data) = folder();
    std::fs::create_dir_all(data.join("store/journal")).unwrap();
    std::fs::write(data.join("store/WITNESS"), "half").unwrap();
    std::fs::write(data.join("CREATING"), "").unwrap();
    std::fs::write(data.join("LOCK"), "").unwrap();
    let arguments = ["--data", &data.display().to_string()];
    let program = Program::start(folder.path(), &arguments);
    assert_eq!(create_database(&mut connect(program.address()), "db").status, 201);
    program.kill();
    let program = Program::start(folder.path(), &arguments);
    assert_eq!(read_database(&mut connect(program.address()), "db").status, 200);
}

#[test]
fn damage_is_reported_and_nothing_is_made_anew() {
    let (folder, data) = folder();
    let arguments = ["--data", &data.display().to_string()];
    Program::start(folder.path(), &arguments).kill();
    std::fs::remove_file(data.join("store/FORMAT")).unwrap();
    let output = run(command(folder.path()).args(["--listen", "127.0.0.1:0"]).args(arguments));
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("is damaged"), "{}", text(&output.stderr));
    assert!(!data.join("store/FORMAT").exists());
}

/// The part of the journal that is being written.
fn newest_segment(data: &std::path::Path) -> std::path::PathBuf {
    let segments = std::fs::read_dir(data.join("store/journal")).expect("there is a journal");
    let number = |path: &std::path::PathBuf| {
        path.file_name().and_then(|name| name.to_str()?.parse::<u64>().ok())
    };
    let paths = segments.map(|entry| entry.expect("the folder can be listed").path());
    paths.max_by_key(number).expect("a server has begun a segment")
}

/// A store with missing acknowledged writes is refused, unless that is accepted; the loss
/// is reported at the start.
#[test]
fn lost_writes_are_refused_until_they_are_accepted_and_told() {
    let (folder, data) = folder();
    let at = data.display().to_string();
    let program = Program::start(folder.path(), &["--data", &at]);
    assert!(program.ready["lost"].is_null(), "{}", program.ready);
    assert_eq!(create_database(&mut connect(program.address()), "kept").status, 201);
    let journal = newest_segment(&data);
    let kept = std::fs::read(&journal).unwrap();
    assert_eq!(create_database(&mut connect(program.address()), "lost").status, 201);
    program.kill();
    std::fs::write(&journal, kept).unwrap();

    let refused = run(command(folder.path()).args(["--listen", "127.0.0.1:0", "--data", &at]));
    let errors = text(&refused.stderr);
    assert!(
        !refused.status.success() && errors.contains("acknowledged writes are lost"),
        "{errors}"
    );
    assert!(errors.contains("accept lost writes to open it with commit"), "{errors}");

    let program = Program::start(folder.path(), &["--data", &at, "--accept-lost-writes"]);
    let lost = program.ready["lost"].as_str().unwrap_or_default().to_owned();
    assert!(lost.contains("was acknowledged") && lost.contains("are lost"), "{lost}");
    let mut stream = connect(program.address());
    let ready = get(&mut stream, "/_orrery/ready");
    assert_eq!((ready.status, ready.body.contains(&lost)), (200, true), "{}", ready.body);
    assert_eq!(read_database(&mut stream, "kept").status, 200);
    assert_eq!(read_database(&mut stream, "lost").status, 404);
    program.kill();
    let program = Program::start(folder.path(), &["--data", &at]);
    assert!(program.ready["lost"].is_null(), "reported and accepted once: {}", program.ready);
}

/// The same with durability `os`, where it need not be accepted.
#[test]
fn without_waiting_for_the_disk_lost_writes_are_told_and_no_reason_to_stop() {
    let (folder, data) = folder();
    let at = data.display().to_string();
    let arguments = ["--data", at.as_str(), "--durability", "os"];
    let program = Program::start(folder.path(), &arguments);
    assert_eq!(create_database(&mut connect(program.address()), "kept").status, 201);
    let journal = newest_segment(&data);
    let kept = std::fs::read(&journal).unwrap();
    assert_eq!(create_database(&mut connect(program.address()), "lost").status, 201);
    program.kill();
    std::fs::write(&journal, kept).unwrap();
    let program = Program::start(folder.path(), &arguments);
    let lost = program.ready["lost"].as_str().unwrap_or_default();
    assert!(lost.contains("was acknowledged") && lost.contains("are lost"), "{lost}");
    let mut stream = connect(program.address());
    assert_eq!(read_database(&mut stream, "kept").status, 200);
    assert_eq!(read_database(&mut stream, "lost").status, 404);
    assert_eq!(create_database(&mut stream, "lost").status, 201);
}
