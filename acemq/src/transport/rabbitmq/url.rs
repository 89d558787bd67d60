//! Where a broker is and who asks, from a URL.

use std::{fmt, time::Duration};

use crate::transport::ConnectError;

/// One broker address, with what the URL says about the connection.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) vhost: String,
    pub(super) heartbeat: Option<u16>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) channel_max: Option<u16>,
}

impl Target {
    /// Host and port, fit for any text.
    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("tls", &self.tls)
            .field("address", &self.address())
            .field("user", &self.user)
            .field("vhost", &self.vhost)
            .finish_non_exhaustive()
    }
}

fn wrong<T>(why: impl Into<String>) -> Result<T, ConnectError> {
    Err(ConnectError::Url { why: why.into() })
}

/// Reads `amqp://user:password@host:port/vhost?heartbeat=10`.
///
/// Errors name the part that is wrong and never repeat the text of the URL, which may hold a password in any place.
pub(super) fn parse(url: &str) -> Result<Target, ConnectError> {
    let url = url.trim();
    let Some((scheme, rest)) = url.split_once("://") else {
        return wrong("it must start with `amqp://` or `amqps://`");
    };
    let tls = match scheme.to_ascii_lowercase().as_str() {
        "amqp" => false,
        "amqps" => true,
        _ => return wrong("the scheme must be `amqp` or `amqps`"),
    };
    if tls && !cfg!(feature = "tls") {
        return wrong("`amqps` needs acemq's feature `tls`, which is off in this build");
    }
    if rest.contains('#') {
        return wrong("a `#` must be written `%23`");
    }
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.split_once('/') {
        Some((authority, path)) => (authority, path),
        None => (rest, ""),
    };
    let (credentials, address) = match authority.rsplit_once('@') {
        Some((credentials, address)) => (Some(credentials), address),
        None => (None, authority),
    };
    let (user, password) = match credentials.map(|both| both.split_once(':').unwrap_or((both, ""))) {
        Some((user, password)) => (decode(user, "user")?, decode(password, "password")?),
        None => ("guest".to_owned(), "guest".to_owned()),
    };
    let (host, port) = address_of(address, if tls { 5671 } else { 5672 })?;
    let vhost = match decode(path, "virtual host")? {
        vhost if vhost.is_empty() => "/".to_owned(),
        vhost if vhost.len() > 255 => return wrong("the virtual host has more than 255 bytes"),
        vhost => vhost,
    };
    let mut target =
        Target { tls, host, port, user, password, vhost, heartbeat: None, connect_timeout: None, channel_max: None };
    for setting in query.into_iter().flat_map(|query| query.split('&')) {
        apply(&mut target, setting)?;
    }
    Ok(target)
}

fn apply(target: &mut Target, setting: &str) -> Result<(), ConnectError> {
    fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, ConnectError> {
        text.parse().map_err(|_| ConnectError::Url { why: format!("`{name}` must be a whole number in its range") })
    }
    let (name, text) = setting.split_once('=').unwrap_or((setting, ""));
    match name {
        "" if setting.is_empty() => {}
        "heartbeat" => target.heartbeat = Some(number(name, text)?),
        "channel_max" => target.channel_max = Some(number(name, text)?),
        "connection_timeout" => {
            target.connect_timeout = Some(Duration::from_millis(number(name, text)?));
        }
        _ => {
            return wrong(
                "of the settings after `?` only `heartbeat`, `connection_timeout` and `channel_max` are known",
            );
        }
    }
    Ok(())
}

fn address_of(text: &str, default_port: u16) -> Result<(String, u16), ConnectError> {
    let (host, port) = if let Some(rest) = text.strip_prefix('[') {
        let Some((host, rest)) = rest.split_once(']') else {
            return wrong("the IPv6 address has no closing `]`");
        };
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return wrong("between `[` and `]` must be an IPv6 address");
        }
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => return wrong("after `]` comes `:` and the port, or nothing"),
        }
    } else {
        match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return wrong("an IPv6 address must be in brackets, and a `:` in a user or password written `%3A`");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        }
    };
    let host = decode(host, "host")?;
    if host.is_empty() {
        return wrong("the host is missing");
    }
    let port = match port {
        None | Some("") => default_port,
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => {
                return wrong(
                    "the port must be a number from 1 to 65535; a `/`, `?`, `#`, `@` or `:` in a password is written in percent-encoding",
                );
            }
        },
    };
    Ok((host, port))
}

fn decode(text: &str, what: &str) -> Result<String, ConnectError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.extend(u8::try_from(high * 16 + low)),
            _ => {
                return wrong(format!(
                    "in the {what}, a `%` must be followed by two hexadecimal digits; a literal `%` is `%25`"
                ));
            }
        }
    }
    String::from_utf8(bytes).or_else(|_| wrong(format!("the {what} is not UTF-8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_address_means_guest_at_the_default_vhost() {
        for url in ["amqp://host", "amqp://host/", "AMQP://host:5672", "amqp://host?"] {
            let target = parse(url).unwrap();
            assert_eq!(target.address(), "host:5672", "{url}");
            assert_eq!((target.user.as_str(), target.password.as_str()), ("guest", "guest"));
            assert_eq!(target.vhost, "/", "{url}");
        }
    }

    #[test]
    fn every_part_is_percent_decoded() {
        let target =
            parse("amqp://a%40b:p%3A%2F%25@h%61:1/%2Fv%20x?heartbeat=7&connection_timeout=1500&channel_max=9").unwrap();
        assert_eq!(target.user, "a@b");
        assert_eq!(target.password, "p:/%");
        assert_eq!(target.host, "ha");
        assert_eq!(target.port, 1);
        assert_eq!(target.vhost, "/v x");
        assert_eq!(target.heartbeat, Some(7));
        assert_eq!(target.connect_timeout, Some(Duration::from_millis(1500)));
        assert_eq!(target.channel_max, Some(9));
    }

    #[test]
    fn an_ipv6_address_is_in_brackets() {
        let target = parse("amqp://[::1]:5673/v").unwrap();
        assert_eq!((target.host.as_str(), target.port), ("::1", 5673));
        assert_eq!(target.address(), "[::1]:5673");
        assert_eq!(parse("amqp://[::1]").unwrap().port, 5672);
        assert!(parse("amqp://::1:5672").is_err());
    }

    #[cfg(feature = "tls")]
    #[test]
    fn amqps_has_its_own_port() {
        assert_eq!(parse("amqps://h").unwrap().port, 5671);
        assert!(parse("amqps://h").unwrap().tls);
    }

    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        for url in [
            "host",
            "http://u:hunter2@h",
            "amqp://u:hunter2@",
            "amqp://u:hunter2@h:x",
            "amqp://u:hunter2@h:0",
            "amqp://u:hunter2%@h",
            "amqp://u:hunter2%ff@h",
            "amqp://u:hunter2#@h",
            "amqp://u:hunter2/@h",
            "amqp://u:hunter2?x@h",
            "amqp://u:hunter2@h?what=hunter2",
            "amqp://u:hunter2@h?heartbeat=hunter2",
            "amqp://u:hunter2@[::1",
            "amqp://u:hunter2@[x]",
        ] {
            let error = parse(url).unwrap_err();
            assert!(matches!(error, ConnectError::Url { .. }), "{url}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("hunter"), "{url}: {error}");
        }
    }

    #[test]
    fn a_target_hides_its_password() {
        let target = parse("amqp://u:hunter2@h").unwrap();
        assert!(!format!("{target:?}").contains("hunter2"));
    }
}
