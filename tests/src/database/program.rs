//! Finding programs, and running them as a user who is not root.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where Debian puts the programs of servers, beside those in `PATH`.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The first of `names` in `PATH` and the folders that a `PATH` may lack.
pub(super) fn find(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&path).chain(FOLDERS.map(PathBuf::from)).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

/// [`find`] for each, if none is missing.
pub(super) fn all<const COUNT: usize>(names: [[&str; 2]; COUNT]) -> Option<[PathBuf; COUNT]> {
    let found: Option<Vec<_>> = names.iter().map(|names| find(names)).collect();
    found?.try_into().ok()
}

/// The folder of PostgreSQL's programs: the newest that Debian has installed, or the one of an `initdb` in `PATH`.
pub(super) fn postgres() -> Option<PathBuf> {
    let releases = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let newest = releases
        .filter(|release| release.path().join("bin/initdb").is_file())
        .max_by_key(|release| release.file_name().to_string_lossy().parse::<u32>().unwrap_or(0))
        .map(|release| release.path().join("bin"));
    newest.or_else(|| {
        // It may be a link; the others lie beside what it points to.
        let initdb = find(&["initdb"])?.canonicalize().ok()?;
        initdb.parent().map(Path::to_owned)
    })
}

/// Who runs a server: both refuse to be run by root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    user: u32,
    group: u32,
}

impl Account {
    /// `None` where the tests themselves are not run by root; otherwise the first of `names` and `nobody` that the
    /// machine knows.
    pub(super) fn instead_of_root(name: &str) -> Option<Self> {
        if std::fs::metadata("/proc/self").map(|this| this.uid()).ok() != Some(0) {
            return None;
        }
        let accounts = std::fs::read_to_string("/etc/passwd").expect("/etc/passwd can be read");
        let account = |name: &str| {
            accounts.lines().find_map(|line| {
                let mut fields = line.split(':');
                (fields.next()? == name).then_some(())?;
                let mut numbers = fields.skip(1).map(str::parse);
                Some(Self { user: numbers.next()?.ok()?, group: numbers.next()?.ok()? })
            })
        };
        let found = account(name).or_else(|| account("nobody"));
        Some(found.unwrap_or_else(|| panic!("this machine has neither a user {name} nor a user nobody")))
    }

    /// Makes the account the owner of `path`.
    pub(super) fn own(self, path: &Path) {
        let owned = std::os::unix::fs::chown(path, Some(self.user), Some(self.group));
        owned.unwrap_or_else(|error| panic!("{} cannot be given to a user: {error}", path.display()));
    }
}

/// A command that runs `program` by `account`, or by the caller where there is none, in a small environment.
pub(super) fn command(account: Option<Account>, program: impl AsRef<OsStr>) -> Command {
    let mut command = match account {
        None => Command::new(program),
        Some(Account { user, group }) => {
            // It becomes the program, so that signals reach that.
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), &format!("--regid={group}")]);
            command.args(["--clear-groups", "--"]).arg(program);
            command
        }
    };
    command.env_clear();
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("LANG", "C.UTF-8");
    command.current_dir("/");
    command
}
