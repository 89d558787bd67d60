//! Settings from the environment.

use std::{sync::Arc, time::Duration};

use crate::{
    Error,
    policy::try_duration,
    transport::{ConnectError, Transport, memory::Memory},
};

/// The broker of an application that names none.
pub(super) const DEFAULT_URL: &str = "amqp://localhost:5672";

/// What the environment sets; each is `None` when its variable is not there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Environment {
    pub(super) url: Option<String>,
    pub(super) drain_timeout: Option<Duration>,
    /// An address, or `off`.
    pub(super) actuator: Option<String>,
}

impl Environment {
    /// Reads the variables through `get`.
    pub(super) fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let drain_timeout = get("ACEMQ_DRAIN_TIMEOUT").and_then(|text| match try_duration(&text) {
            Ok(timeout) => Some(timeout),
            Err(error) => {
                problems.push(format!("`ACEMQ_DRAIN_TIMEOUT` is `{text}`: {error}"));
                None
            }
        });
        let actuator = get("ACEMQ_ACTUATOR").filter(|value| {
            let problem = if value == "off" {
                return true;
            } else if cfg!(not(feature = "actuator")) {
                "the feature `actuator` of acemq is not compiled in"
            } else if value.parse::<std::net::SocketAddr>().is_err() {
                "it takes an address with a port, such as `127.0.0.1:9464`, or `off`"
            } else {
                return true;
            };
            problems.push(format!("`ACEMQ_ACTUATOR` is `{value}`: {problem}"));
            false
        });
        if problems.is_empty() {
            Ok(Self { url: get("ACEMQ_URL"), drain_timeout, actuator })
        } else {
            Err(Error::Config(problems))
        }
    }
}

/// The transport that a URL names.
pub(super) fn transport(url: &str) -> Result<Arc<dyn Transport>, ConnectError> {
    if let Some(name) = url.strip_prefix("memory://") {
        return Ok(Arc::new(Memory::named(name)));
    }
    rabbitmq(url)
}

#[cfg(feature = "rabbitmq")]
fn rabbitmq(url: &str) -> Result<Arc<dyn Transport>, ConnectError> {
    Ok(Arc::new(crate::transport::rabbitmq::RabbitMq::new(url)?))
}

#[cfg(not(feature = "rabbitmq"))]
fn rabbitmq(_: &str) -> Result<Arc<dyn Transport>, ConnectError> {
    Err(ConnectError::Url {
        why: "only `memory://name` is compiled in: turn on the feature `rabbitmq` of acemq for `amqp://`".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Environment, String> {
        Environment::read(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
        .map_err(|error| error.to_string())
    }

    #[test]
    fn an_empty_environment_sets_nothing() {
        assert_eq!(read(&[]), Ok(Environment::default()));
    }

    #[test]
    fn a_bad_value_names_its_variable_and_the_grammar() {
        let error = read(&[("ACEMQ_DRAIN_TIMEOUT", "20")]).unwrap_err();
        assert!(error.contains("`ACEMQ_DRAIN_TIMEOUT` is `20`") && error.contains(r#""30s""#), "{error}");
    }

    #[test]
    fn a_bad_address_names_its_variable() {
        let error = read(&[("ACEMQ_ACTUATOR", "9464")]).unwrap_err();
        assert!(error.contains("`ACEMQ_ACTUATOR` is `9464`"), "{error}");
        assert_eq!(read(&[("ACEMQ_ACTUATOR", "off")]).unwrap().actuator.as_deref(), Some("off"));
    }

    #[test]
    fn good_values_are_taken() {
        let environment = read(&[("ACEMQ_URL", "memory://shop"), ("ACEMQ_DRAIN_TIMEOUT", "5s")]).unwrap();
        assert_eq!(environment.url.as_deref(), Some("memory://shop"));
        assert_eq!(environment.drain_timeout, Some(Duration::from_secs(5)));
    }
}
