//! Whole services, built as their authors would.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Mutex,
};

/// Two builds in one directory would wait for each other anyway; one after the other, their output stays readable.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("fixtures")
}

/// Runs cargo on the fixtures, with the versions that acemq itself is tested with.
fn cargo(arguments: &[&str]) -> Output {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock");
    fs::copy(lock, fixtures().join("Cargo.lock")).unwrap();
    Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--offline")
        .current_dir(fixtures())
        .env("CARGO_TARGET_DIR", target())
        // Cargo's own settings for this test are not for those builds.
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap()
}

fn succeeds(output: &Output, what: &str) {
    assert!(output.status.success(), "{what}:\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_renamed_crate_is_found_by_the_name_that_is_given() {
    let _one = ONE_AT_A_TIME.lock();
    succeeds(&cargo(&["check", "-p", "renamed"]), "cargo check -p renamed");
}

#[test]
fn what_compiles_in_the_edition_of_2024_does_in_the_one_of_2021() {
    let _one = ONE_AT_A_TIME.lock();
    succeeds(&cargo(&["check", "-p", "edition", "--tests"]), "cargo check -p edition --tests");
}

#[test]
fn the_strictest_lints_find_nothing_in_what_is_generated() {
    let _one = ONE_AT_A_TIME.lock();
    succeeds(&cargo(&["clippy", "-p", "lints"]), "cargo clippy -p lints");
}

/// How a program is optimized and linked.
const BUILDS: [(&str, &[&str]); 5] = [
    ("debug", &["-Cdebug-assertions=on", "-Clto=off"]),
    ("release", &["-Copt-level=3", "-Clto=off"]),
    ("release, thin LTO", &["-Copt-level=1", "-Clto=thin"]),
    ("release, fat LTO", &["-Copt-level=1", "-Clto=fat"]),
    ("release, one codegen unit", &["-Copt-level=3", "-Clto=off", "-Ccodegen-units=1"]),
];

#[test]
fn consumers_of_a_dependency_are_registered_however_the_program_is_linked() {
    let _one = ONE_AT_A_TIME.lock();
    let linking = Linking::prepare();
    for (build, flags) in BUILDS {
        let handlers = linking.library(flags);
        let output = linking.program(flags, &handlers, &["--cfg", "named"]);
        let queues = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(queues, "far\nfarther\nroot\nshop\n", "{build}");
    }
}

#[test]
fn a_dependency_that_nothing_names_is_dropped_and_the_start_says_what_to_write() {
    let _one = ONE_AT_A_TIME.lock();
    let linking = Linking::prepare();
    let flags = ["-Clto=off"];
    let handlers = linking.library(&flags);
    for (more, queues, says) in [
        (&[] as &[&str], "", "there is no consumer"),
        (&["--cfg", "own"], "own\n", "`App::expect_consumers(5)`, but the number of consumers is 1 (program::own)"),
    ] {
        let output = linking.program(&flags, &handlers, more);
        assert_eq!(String::from_utf8_lossy(&output.stdout), queues);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains(says) && error.contains("`use that_crate as _;`"), "{error}");
    }
}

fn is_library(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|extension| extension == "rlib")
}

/// Compiles the two crates of the linking fixture; what they depend on is built once, by cargo.
struct Linking {
    dependencies: PathBuf,
    externs: Vec<String>,
}

impl Linking {
    fn prepare() -> Self {
        let output = cargo(&["build", "--release", "-p", "linking", "--lib", "--message-format=json"]);
        succeeds(&output, "cargo build -p linking");
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let externs = messages
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .filter(|message| message["reason"] == "compiler-artifact")
            .filter_map(|message| {
                let name = message["target"]["name"].as_str()?.to_owned();
                let files = message["filenames"].as_array()?;
                let library = files.iter().filter_map(|file| file.as_str()).find(|file| is_library(file))?;
                ["acemq", "tokio"].contains(&name.as_str()).then(|| format!("--extern={name}={library}"))
            })
            .collect();
        Self { dependencies: target().join("release/deps"), externs }
    }

    fn rustc(&self, arguments: &[&str], flags: &[&str]) {
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            .args(["--edition=2021", "--cap-lints=allow"])
            .args(arguments)
            .args(flags)
            .args(&self.externs)
            .arg(format!("-Ldependency={}", self.dependencies.display()))
            .current_dir(fixtures().join("linking"))
            .output()
            .unwrap();
        succeeds(&output, "rustc");
    }

    fn library(&self, flags: &[&str]) -> PathBuf {
        let library = target().join("libhandlers.rlib");
        // What goes into a library is optimized when the program is linked.
        let flags: Vec<&str> = flags.iter().copied().filter(|flag| !flag.starts_with("-Clto")).collect();
        let output = format!("-o{}", library.display());
        self.rustc(
            &["--crate-type=rlib", "--crate-name=handlers", "-Cembed-bitcode=yes", &output, "src/lib.rs"],
            &flags,
        );
        library
    }

    fn program(&self, flags: &[&str], handlers: &Path, more: &[&str]) -> Output {
        let program = target().join("linking-program");
        let output = format!("-o{}", program.display());
        let handlers = format!("--extern=handlers={}", handlers.display());
        let mut arguments = vec!["--crate-type=bin", "--crate-name=program", &output, &handlers, "src/main.rs"];
        arguments.extend(more);
        self.rustc(&arguments, flags);
        let output = Command::new(program).output().unwrap();
        succeeds(&output, "the program");
        output
    }
}
