//! Checks that an application adds to its health.

use std::{collections::BTreeMap, fmt, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::sync::Mutex;

use super::Status;
use crate::handler::panic_text;

/// How long one check may take. The whole health is answered within three seconds, however many there are.
pub const CHECK_TIMEOUT: Duration = Duration::from_millis(2_800);

/// One part of an application that says how it is, such as a database.
///
/// A check that takes too long or panics makes the application degraded, and is named; it never makes it down.
///
/// # Examples
/// ```
/// use acemq::{App, health::{Component, HealthContributor}};
///
/// struct Disk;
///
/// impl HealthContributor for Disk {
///     fn name(&self) -> &'static str {
///         "disk"
///     }
///
///     async fn check(&self) -> Component {
///         Component::up().with("free", "12 GB")
///     }
/// }
///
/// let app = App::new().health(Disk);
/// ```
pub trait HealthContributor: Send + Sync + 'static {
    /// The name of the part; each has another.
    fn name(&self) -> &'static str;

    /// Says how the part is.
    fn check(&self) -> impl Future<Output = Component> + Send;
}

/// How one part of an application is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Component {
    /// Whether it works.
    pub status: Status,
    /// What else there is to say; no secrets, since everybody who reaches the health endpoint sees it.
    pub details: BTreeMap<String, String>,
}

impl Component {
    /// A part with this status.
    #[must_use]
    pub fn new(status: Status) -> Self {
        Self { status, details: BTreeMap::new() }
    }

    /// A part that works.
    #[must_use]
    pub fn up() -> Self {
        Self::new(Status::Up)
    }

    /// A part that works in part, and why.
    #[must_use]
    pub fn degraded(reason: impl Into<String>) -> Self {
        Self::new(Status::Degraded).with("reason", reason)
    }

    /// A part that does not work, and why. The health endpoint answers 503, and an orchestrator may restart the process.
    #[must_use]
    pub fn down(reason: impl Into<String>) -> Self {
        Self::new(Status::Down).with("reason", reason)
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.details.insert(name.into(), value.into());
        self
    }
}

type Check = Arc<dyn Fn() -> BoxFuture<'static, Component> + Send + Sync>;

/// A registered contributor.
#[derive(Clone)]
pub(crate) struct Contributor {
    pub(crate) name: &'static str,
    check: Check,
    /// Held while a check runs, so that one that hangs is not started again and again.
    running: Arc<Mutex<()>>,
}

impl fmt::Debug for Contributor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contributor").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Contributor {
    pub(crate) fn new(contributor: impl HealthContributor) -> Self {
        let contributor = Arc::new(contributor);
        Self {
            name: contributor.name(),
            check: Arc::new(move || {
                let contributor = Arc::clone(&contributor);
                async move { contributor.check().await }.boxed()
            }),
            running: Arc::default(),
        }
    }

    /// Asks, and always has an answer in time.
    pub(crate) async fn ask(&self) -> Component {
        let Ok(running) = Arc::clone(&self.running).try_lock_owned() else {
            return Component::degraded("an earlier check has not ended");
        };
        let check = Arc::clone(&self.check);
        // In a task of its own, so that a check that blocks its thread blocks nobody else's.
        let mut task = tokio::spawn(async move {
            let _running = running;
            AssertUnwindSafe(async move { check().await }).catch_unwind().await
        });
        match tokio::time::timeout(CHECK_TIMEOUT, &mut task).await {
            Ok(Ok(Ok(component))) => component,
            Ok(Ok(Err(payload))) => Component::degraded(format!("the check panicked: {}", panic_text(payload))),
            Ok(Err(_)) => Component::degraded("the check was stopped"),
            Err(_) => {
                task.abort();
                Component::degraded(format!("the check took longer than {CHECK_TIMEOUT:?}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Checked<F>(F);

    impl<F: Fn() -> BoxFuture<'static, Component> + Send + Sync + 'static> HealthContributor for Checked<F> {
        fn name(&self) -> &'static str {
            "checked"
        }

        async fn check(&self) -> Component {
            (self.0)().await
        }
    }

    fn reason(component: &Component) -> (Status, &str) {
        (component.status, component.details["reason"].as_str())
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_never_ends_is_degraded_and_started_once_more_only_when_it_is_gone() {
        let contributor = Contributor::new(Checked(|| std::future::pending().boxed()));
        let (first, second) = tokio::join!(contributor.ask(), contributor.ask());
        assert_eq!(reason(&first), (Status::Degraded, "the check took longer than 2.8s"));
        assert_eq!(reason(&second), (Status::Degraded, "an earlier check has not ended"));
        tokio::task::yield_now().await;
        assert_eq!(reason(&contributor.ask().await), (Status::Degraded, "the check took longer than 2.8s"));
    }

    #[tokio::test]
    async fn a_check_that_panics_is_degraded_with_its_words() {
        let contributor = Contributor::new(Checked(|| async { panic!("no such disk") }.boxed()));
        assert_eq!(reason(&contributor.ask().await), (Status::Degraded, "the check panicked: no such disk"));
        let contributor = Contributor::new(Checked(|| panic!("before the first await")));
        assert_eq!(reason(&contributor.ask().await), (Status::Degraded, "the check panicked: before the first await"));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_check_that_blocks_its_thread_blocks_nobody_else() {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = std::sync::Mutex::new(Some(released));
        let contributor = Contributor::new(Checked(move || {
            let released = released.lock().unwrap().take();
            async move {
                // Ends when the test does.
                let _ = released.map(|released| released.recv());
                Component::up()
            }
            .boxed()
        }));
        assert_eq!(reason(&contributor.ask().await), (Status::Degraded, "the check took longer than 2.8s"));
        assert_eq!(reason(&contributor.ask().await), (Status::Degraded, "an earlier check has not ended"));
        drop(release);
    }
}
