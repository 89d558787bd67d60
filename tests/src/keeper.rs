//! A shell beside the test process that cleans up after it, whatever ends it.
//!
//! `Drop` is not enough: a static is never dropped, and nothing is when the process gets SIGKILL. So a shell holds
//! the reading end of a pipe whose only writer is this process. It is told which process groups and directories are
//! alive; when the pipe closes it kills the groups and removes the directories.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

/// It reads one fact a line and acts at the end of its input: every group is told to quit and killed after 2 s (a
/// PostgreSQL that is killed leaves a segment of shared memory behind), and then the directories are removed.
const SCRIPT: &str = r#"
groups= dirs= newline='
'
while read -r what value; do
    case $what in
        group) groups="$groups $value" ;;
        no-group)
            rest=
            for one in $groups; do [ "$one" = "$value" ] || rest="$rest $one"; done
            groups=$rest
            ;;
        dir) dirs="$dirs$newline$value" ;;
    esac
done
for one in $groups; do kill -s QUIT -- "-$one"; done
tries=0
for one in $groups; do
    while kill -s 0 -- "-$one" && [ $tries -lt 100 ]; do sleep 0.02; tries=$((tries + 1)); done
done
for one in $groups; do kill -s KILL -- "-$one"; done
for one in $groups; do
    tries=0
    while kill -s 0 -- "-$one" && [ $tries -lt 100 ]; do sleep 0.02; tries=$((tries + 1)); done
done
IFS=$newline
for one in $dirs; do
    tries=0
    until [ ! -e "$one" ] || rm -rf -- "$one" || [ $tries -gt 20 ]; do sleep 0.1; tries=$((tries + 1)); done
done
"#;

/// Has `group` killed when this process ends.
pub(crate) fn watch_group(group: u32) {
    tell(&format!("group {group}"));
}

/// Takes back [`watch_group`], once the group's leader has been waited for: its number may be given away again.
pub(crate) fn forget_group(group: u32) {
    tell(&format!("no-group {group}"));
}

/// Has `dir` removed when this process ends; one that is gone by then does no harm.
pub(crate) fn watch_dir(dir: &Path) {
    tell(&format!("dir {}", dir.display()));
}

fn tell(line: &str) {
    static SHELL: OnceLock<Mutex<Child>> = OnceLock::new();
    let shell = SHELL.get_or_init(|| Mutex::new(start()));
    let mut shell = shell.lock().unwrap_or_else(PoisonError::into_inner);
    let pipe = shell.stdin.as_mut().expect("stdin was asked for");
    writeln!(pipe, "{line}").expect("the shell that cleans up after this test process has ended");
}

fn start() -> Child {
    Command::new("/bin/sh")
        .args(["-c", SCRIPT, "acemq-tests-keeper"])
        .stdin(Stdio::piped())
        // It outlives the test process for a moment, so it must not hold the pipes that a test runner reads.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C at a terminal goes to the whole foreground group; the shell has to see the end of the tests first.
        .process_group(0)
        .spawn()
        .expect("/bin/sh cannot be started to clean up after the tests")
}
