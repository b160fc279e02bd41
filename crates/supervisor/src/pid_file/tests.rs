use super::*;
use std::process::Command;
use std::sync::Barrier;
use tempfile::TempDir;

fn folder() -> (TempDir, PidFile) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = PidFile::new(&folder.path().join("server.pid"));
    (folder, file)
}

fn content(file: &PidFile) -> String {
    fs::read_to_string(file.path()).expect("a file")
}

fn own() -> String {
    format!("{}\n", process::id())
}

/// The id of a process that has ended.
fn dead_pid() -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    child.wait().expect("a status");
    child.id()
}

#[test]
fn it_holds_the_id_until_it_is_removed() {
    let (_folder, file) = folder();
    file.write().expect("a file");
    assert_eq!(content(&file), own());
    file.remove();
    assert!(!file.path().exists());
}

#[test]
fn the_file_of_a_process_that_is_gone_is_taken_over() {
    let (_folder, file) = folder();
    for text in [format!("{}      \n", dead_pid()), String::new(), "99999999999\n".into()] {
        fs::write(file.path(), text).expect("a file");
        file.write().expect("a file");
        assert_eq!(content(&file), own());
    }
}

#[test]
fn a_file_that_has_the_own_id_already_stays() {
    let (_folder, file) = folder();
    file.write().expect("a file");
    file.write().expect("it is ours");
    assert_eq!(content(&file), own());
}

#[test]
fn the_file_of_a_running_process_is_refused() {
    let (_folder, file) = folder();
    fs::write(file.path(), "1\n").expect("a file");
    let error = file.write().expect_err("process 1 runs");
    let expected = format!("pid file {}: process 1 is running", file.path().display());
    assert_eq!((error.to_string(), error.pid()), (expected, Some(1)));
    file.remove();
    assert_eq!(content(&file), "1\n");
}

#[test]
fn a_file_that_holds_something_else_is_refused() {
    let (_folder, file) = folder();
    for text in ["run App\n", "0\n", "-1\n", "12 13\n"] {
        fs::write(file.path(), text).expect("a file");
        let error = file.write().expect_err("it is no pid file");
        assert!(
            error.to_string().ends_with(": it does not contain a process id"),
            "{error}"
        );
        assert_eq!(content(&file), text);
    }
}

#[test]
fn a_link_is_not_followed() {
    let (folder, file) = folder();
    let victim = folder.path().join("victim");
    fs::write(&victim, "").expect("a file");
    std::os::unix::fs::symlink(&victim, file.path()).expect("a link");
    let error = file.write().expect_err("a link");
    assert!(error.to_string().contains("it is a symbolic link, which"), "{error}");
    assert_eq!(fs::read_to_string(&victim).expect("a file"), "");
}

#[test]
fn an_error_names_the_file_and_the_reason() {
    let error = PidFile::new(Path::new("/nowhere/at/all.pid"))
        .write()
        .expect_err("no folder");
    assert_eq!(
        error.to_string(),
        "pid file /nowhere/at/all.pid: No such file or directory"
    );
}

#[test]
fn a_file_that_is_removed_while_it_waits_for_the_lock_is_made_anew() {
    let (_folder, file) = folder();
    for _ in 0..50 {
        let holder = file.locked(true).expect("a lock");
        let gate = Barrier::new(2);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                gate.wait();
                file.write().expect("a file");
            });
            gate.wait();
            fs::remove_file(file.path()).expect("a file");
            drop(holder);
            writer.join().expect("it has written");
        });
        assert_eq!(content(&file), own());
    }
}
