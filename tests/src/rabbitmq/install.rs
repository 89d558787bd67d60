//! Where a RabbitMQ is installed, and how its programs are run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::needs;

/// A release of RabbitMQ that the tests run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// 3.x: `ACEMQ_TEST_RABBITMQ_3`, otherwise the machine's own or the folder `bookworm` of the cache.
    V3,
    /// 4.x: `ACEMQ_TEST_RABBITMQ_4`, otherwise the machine's own or the folder `trixie` of the cache.
    V4,
}

impl Version {
    /// Every version, oldest first.
    pub const ALL: [Self; 2] = [Self::V3, Self::V4];

    /// The number before the first dot.
    pub fn major(self) -> u16 {
        match self {
            Self::V3 => 3,
            Self::V4 => 4,
        }
    }

    /// What a test that needs it names in [`needs!`](crate::needs!).
    pub fn server(self) -> needs::Server {
        match self {
            Self::V3 => needs::Server::RabbitMq3,
            Self::V4 => needs::Server::RabbitMq4,
        }
    }

    /// The Debian release from which `scripts/test.sh` takes it where the machine has another.
    fn release(self) -> &'static str {
        match self {
            Self::V3 => "bookworm",
            Self::V4 => "trixie",
        }
    }
}

/// The programs of RabbitMQ, as Debian lays them out below `root`.
const PROGRAMS: &str = "usr/lib/rabbitmq/bin";

/// Runs a program in another root whose `/proc` is there only for it: the mount belongs to a namespace of its own
/// and goes with the process, so nothing stays mounted in the cache.
const ENTER: &str = "mount -t proc proc \"$0/proc\" && exec chroot \"$0\" \"$@\"";

/// An installed RabbitMQ: of this machine, or of another Debian release in a folder that is entered by `chroot`.
#[derive(Debug, Clone)]
pub(crate) struct Install {
    root: PathBuf,
    number: [u16; 3],
}

impl Install {
    /// Finds the installation of `version`, or fails the test with a sentence that says what to do.
    pub(crate) fn find(version: Version) -> Self {
        version.server().assert_wanted();
        let variable = format!("ACEMQ_TEST_RABBITMQ_{}", version.major());
        if let Some(root) = std::env::var_os(&variable) {
            let root = PathBuf::from(root);
            return match number(&root) {
                Some(number) if number[0] == version.major() => Self { root, number },
                Some([major, minor, patch]) => panic!(
                    "{variable} names {}, where RabbitMQ {major}.{minor}.{patch} is installed, not {}.x",
                    root.display(),
                    version.major()
                ),
                None => panic!(
                    "{variable} names {}, where no RabbitMQ is: {PROGRAMS}/rabbitmq-server is missing",
                    root.display()
                ),
            };
        }
        let places = [PathBuf::from("/"), cache().join(version.release())];
        let found = places.iter().find_map(|root| {
            let number = number(root).filter(|number| number[0] == version.major())?;
            Some(Self { root: root.clone(), number })
        });
        found.unwrap_or_else(|| {
            panic!(
                "RabbitMQ {major}.x is neither on this machine nor in {root}: run scripts/test.sh, which installs it, \
                 or set {variable} to the root directory of an installation, or leave it out by \
                 ACEMQ_TEST_WITHOUT={name}",
                major = version.major(),
                root = places[1].display(),
                name = version.server().name(),
            )
        })
    }

    /// The version as major, minor and patch.
    pub(crate) fn number(&self) -> [u16; 3] {
        self.number
    }

    /// Where the directories of nodes are made: the programs must see them.
    pub(crate) fn scratch_parent(&self) -> PathBuf {
        if self.is_here() { std::env::temp_dir() } else { self.root.join("tmp") }
    }

    /// `path`, which is below [`Install::scratch_parent`], as the programs see it.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        if self.is_here() {
            return path.to_owned();
        }
        Path::new("/").join(path.strip_prefix(&self.root).expect("the directories of nodes are below the root"))
    }

    /// A command that runs `program`, one of RabbitMQ's or one on the path.
    pub(crate) fn command(&self, program: &str) -> Command {
        let own = format!("/{PROGRAMS}/{program}");
        let program = if self.root.join(&own[1..]).exists() { own } else { program.to_owned() };
        let mut command;
        if self.is_here() {
            command = Command::new(program);
        } else if self.root.join("proc/self").exists() {
            command = Command::new("chroot");
            command.arg(&self.root).arg(program);
        } else {
            command = Command::new("unshare");
            command.args(["--mount", "--", "/bin/sh", "-c", ENTER]).arg(&self.root).arg(program);
        }
        command.env_clear();
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
        command
    }

    fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// The version that is installed below `root`, if one is.
fn number(root: &Path) -> Option<[u16; 3]> {
    if !root.join(PROGRAMS).join("rabbitmq-server").exists() {
        return None;
    }
    let libraries = std::fs::read_dir(root.join("usr/lib/rabbitmq/lib")).ok()?;
    libraries.filter_map(Result::ok).find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let mut parts = name.strip_prefix("rabbitmq_server-")?.split('.').map(str::parse);
        Some([parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?])
    })
}

/// The folder in which `scripts/test.sh` keeps what it installs for itself.
fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    folder("ACEMQ_TEST_CACHE")
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("acemq-tests")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/acemq-tests")))
        .unwrap_or_else(|| std::env::temp_dir().join("acemq-tests"))
}
