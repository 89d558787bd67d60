//! What can be set about the connections to RabbitMQ.

use std::{fmt, time::Duration};

use super::url::{self, Target};
use crate::transport::ConnectError;

/// Where RabbitMQ is and how to talk to it.
///
/// ```
/// # use std::time::Duration;
/// use acemq::transport::rabbitmq::{Config, RabbitMq};
///
/// let transport = RabbitMq::with(
///     Config::new("amqp://guest:guest@localhost:5672/")
///         .connection_name("orders")
///         .heartbeat(Duration::from_secs(5)),
/// )?;
/// # Ok::<(), acemq::transport::ConnectError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Config {
    urls: Vec<String>,
    settings: Settings,
}

/// A [`Config`] without its addresses.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) heartbeat: u16,
    pub(super) connect_timeout: Duration,
    pub(super) confirm_timeout: Duration,
    pub(super) answer_timeout: Duration,
    pub(super) close_timeout: Duration,
    pub(super) max_message_size: Option<usize>,
    pub(super) connection_name: String,
    pub(super) root_certificates: Option<String>,
}

impl Config {
    /// Everything by default, for one URL or for several with commas between them, which are tried in order.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            urls: vec![url.into()],
            settings: Settings {
                heartbeat: 10,
                connect_timeout: Duration::from_secs(10),
                confirm_timeout: Duration::from_secs(30),
                answer_timeout: Duration::from_secs(10),
                close_timeout: Duration::from_secs(5),
                max_message_size: None,
                connection_name: "acemq".to_owned(),
                root_certificates: None,
            },
        }
    }

    /// Adds an address to try when the ones before it do not answer.
    pub fn or(mut self, url: impl Into<String>) -> Self {
        self.urls.push(url.into());
        self
    }

    /// How often each side shows that it lives: 10 s by default, in whole seconds, at least one. A peer that vanished is
    /// noticed after twice this time. `?heartbeat=` in a URL wins over it, and the broker may ask for less.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.settings.heartbeat = u16::try_from(every.as_secs()).unwrap_or(u16::MAX).max(1);
        self
    }

    /// How long one address may take from the dial to the end of the handshake: 10 s by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// How long a publish waits for its confirm before its outcome is unknown: 30 s by default.
    pub fn confirm_timeout(mut self, timeout: Duration) -> Self {
        self.settings.confirm_timeout = timeout;
        self
    }

    /// How long the broker may take to answer a declaration, or to open a channel or a consumer: 10 s by default.
    pub fn answer_timeout(mut self, timeout: Duration) -> Self {
        self.settings.answer_timeout = timeout;
        self
    }

    /// How long a close waits for outstanding confirms, and then for the broker's answer: 5 s each by default. After it
    /// the socket is cut.
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.settings.close_timeout = timeout;
        self
    }

    /// The largest body that the broker takes, if its own `max_message_size` is set: by default 16 MiB for RabbitMQ since
    /// 4.0, and 128 MiB before. Larger ones are refused before anything is written.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.settings.max_message_size = Some(bytes);
        self
    }

    /// The name that the management interface shows for the connections; their purpose is appended to it.
    pub fn connection_name(mut self, name: impl Into<String>) -> Self {
        self.settings.connection_name = name.into();
        self
    }

    /// Certificates in PEM to trust for `amqps://`, beside those of the system.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl Into<String>) -> Self {
        self.settings.root_certificates = Some(pem.into());
        self
    }

    pub(super) fn into_parts(self) -> Result<(Vec<Target>, Settings), ConnectError> {
        let targets = self.urls.iter().flat_map(|urls| split(urls));
        Ok((targets.map(url::parse).collect::<Result<_, _>>()?, self.settings))
    }
}

/// The URLs of a list. A comma also occurs inside a password, so only one before a scheme separates.
fn split(urls: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = urls;
    let mut from = 0;
    while let Some(comma) = rest.get(from..).and_then(|tail| tail.find(',')) {
        let (head, tail) = rest.split_at(from + comma);
        let next = tail.get(1..).unwrap_or_default().trim_start();
        if next.starts_with("amqp://") || next.starts_with("amqps://") {
            parts.push(head);
            rest = next;
            from = 0;
        } else {
            from += comma + 1;
        }
    }
    parts.push(rest);
    parts
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URLs hold passwords.
        f.debug_struct("Config").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_urls_are_read_in_order() {
        let (targets, _) = Config::new("amqp://a, amqp://u:p,q@b:1 ,amqp://c/v,w").or("amqp://d").into_parts().unwrap();
        let hosts: Vec<_> = targets.iter().map(|target| target.host.as_str()).collect();
        assert_eq!(hosts, ["a", "b", "c", "d"]);
        assert_eq!(targets[1].password, "p,q");
        assert_eq!(targets[2].vhost, "v,w");
    }

    #[test]
    fn a_config_hides_its_passwords() {
        let config = Config::new("amqp://u:hunter2@h");
        assert!(!format!("{config:?}").contains("hunter2"));
        assert!(Config::new("amqp://u:hunter2@").into_parts().is_err());
    }

    #[test]
    fn a_heartbeat_is_at_least_a_second() {
        let settings = Config::new("").heartbeat(Duration::from_millis(10)).settings;
        assert_eq!(settings.heartbeat, 1);
    }
}
