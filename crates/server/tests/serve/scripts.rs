//! `orrery script` against a running server.

use std::process::Output;

use wire_cosmos::EMULATOR_KEY;

use crate::client::{Signed, connect, create_database, send, send_signed};
use crate::program::{Program, command, folder, run, text};

const CONTAINER: &str = "dbs/d/colls/c";

struct World {
    program: Program,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let program = Program::in_memory();
        let mut stream = connect(program.address());
        assert_eq!(create_database(&mut stream, "d").status, 201);
        let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2}}"#;
        let request = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
        assert_eq!(send_signed(&mut stream, EMULATOR_KEY, request, "", body).status, 201);
        World { program, folder: folder().0 }
    }

    fn write(&self, path: &str, body: &str) {
        let path = self.folder.path().join(path);
        let folder = path.parent().expect("it is in a folder");
        std::fs::create_dir_all(folder).expect("there is room for a folder");
        std::fs::write(path, body).expect("there is room for a file");
    }

    fn script(&self, verb: &str, arguments: &[&str]) -> Output {
        let mut command = command(self.folder.path());
        command.args(["script", verb, CONTAINER, "--server"]);
        run(command.arg(self.program.address().to_string()).args(arguments))
    }

    #[track_caller]
    fn done(&self, verb: &str, arguments: &[&str]) -> (String, String) {
        let output = self.script(verb, arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        (out, err)
    }

    #[track_caller]
    fn refused(&self, verb: &str, arguments: &[&str]) -> (String, String) {
        let output = self.script(verb, arguments);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(!output.status.success(), "{out}{err}");
        (out, err)
    }
}

const SUM: &str = "function (a, b) { console.log('adding'); __.response.setBody({ sum: a + b }); }";

#[test]
fn scripts_are_uploaded_from_folders_run_and_deleted() {
    let world = World::new();
    world.write("all/procedures/sum.js", SUM);
    world.write("all/triggers/check.it.pre.create.js", "function () {}");
    world.write("all/functions/twice.js", "function (n) { return 2 * n; }");
    world.write("all/functions/notes.txt", "no script");
    let (out, _) = world.done("upload", &["all"]);
    assert_eq!(out, "created procedure sum\ncreated trigger check.it\ncreated function twice\n");
    assert_eq!(world.done("upload", &["all/procedures"]).0, "replaced procedure sum\n");
    assert_eq!(world.done("show", &["sum"]).0.trim_end(), SUM);

    let (out, err) = world.done("run", &["sum", "--partition-key", "a", "1", "2"]);
    assert_eq!(out, "{\"sum\":3}\n");
    assert!(err.contains("adding\n") && err.contains(" RU"), "{err}");
    let (out, _) = world.done("list", &[]);
    for line in
        ["procedure  sum       ", "trigger    check.it  ", "(Pre, Create)", " 1 runs, 0 failed"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    world.done("delete", &["twice", "--kind", "function"]);
    let (_, err) = world.refused("show", &["twice", "--kind", "function"]);
    assert!(err.contains("Not Found"), "{err}");
}

#[test]
fn errors_name_the_file_the_line_and_the_column() {
    let world = World::new();
    world.write("broken.js", "function () {\n  return 1 +;\n}");
    world.write(
        "fails.js",
        "function () {\n  console.log('so far');\n  throw new RangeError('no');\n}",
    );
    let (out, err) = world.refused("upload", &["broken.js", "fails.js"]);
    assert_eq!(out, "created procedure fails\n");
    assert!(err.contains("broken.js:2:13: SyntaxError: "), "{err}");
    let (out, err) = world.refused("run", &["fails", "--partition-key", "a"]);
    assert_eq!(out, "");
    assert!(err.contains("so far\n") && err.contains("fails:3:13: RangeError: no\n"), "{err}");
    assert!(err.contains("nothing was changed"), "{err}");

    world.write("triggers/now.js", "function () {}");
    assert!(world.refused("upload", &["triggers"]).1.contains("NAME.TIME.OPERATION.js"));
    world.write("triggers/now.js.late.create.js", "function () {}");
    std::fs::remove_file(world.folder.path().join("triggers/now.js")).unwrap();
    assert!(world.refused("upload", &["triggers"]).1.contains("'Late' is not a valid triggerType"));
    assert!(world.refused("upload", &["absent.js"]).1.contains("absent.js"));
    assert!(world.refused("run", &["fails", "not json"]).1.contains("no JSON"));
}

#[test]
fn metrics_count_each_script() {
    let world = World::new();
    world.write("sum.js", SUM);
    world.done("upload", &["sum.js"]);
    world.done("run", &["sum", "--partition-key", "a", "1", "2"]);
    let key = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
    let mut stream = connect(world.program.address());
    let metrics = send(&mut stream, "GET", "/_orrery/metrics", &key, "").body;
    let labels = r#"container="dbs/d/colls/c",kind="procedure",script="sum""#;
    for line in [
        format!("orrery_script_runs_total{{{labels}}} 1\n"),
        format!("orrery_script_failures_total{{{labels}}} 0\n"),
        format!("orrery_script_request_units_total{{{labels}}} 1."),
        format!("orrery_script_seconds_total{{{labels}}} "),
    ] {
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}
