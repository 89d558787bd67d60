//! For which host names requests are answered.
//!
//! A web page on the same machine can have its own name point to the loopback address and then read what is served there.
//! Its requests carry that name; those of an orchestrator carry an address.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{StatusCode, Version, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};

/// The names beside `localhost`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    /// Whether a request with this `Host` header is answered.
    fn answer(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let name = authority.host();
        let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        !host.contains('@')
            && (address.parse::<IpAddr>().is_ok()
                || name.eq_ignore_ascii_case("localhost")
                || self.0.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }
}

pub(super) async fn check(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut named = request.headers().get_all(header::HOST).iter();
    let answered = match (named.next(), named.next()) {
        (Some(host), None) => host.to_str().is_ok_and(|host| hosts.answer(host)),
        // No browser speaks HTTP/1.0 or leaves the name out.
        (None, None) => request.version() < Version::HTTP_11,
        _ => false,
    };
    if answered {
        next.run(request).await
    } else {
        let why = "ask for an address or for localhost; other names are answered after `App::actuator_host`\n";
        (StatusCode::FORBIDDEN, why).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_localhost_and_known_names_are_answered_and_nothing_else() {
        let hosts = Hosts::new(vec!["metrics.shop.internal".to_owned()]);
        for (host, answered) in [
            ("127.0.0.1:9464", true),
            ("127.0.0.1", true),
            ("[::1]:9464", true),
            ("10.1.2.3:9464", true),
            ("localhost:9464", true),
            ("LOCALHOST", true),
            ("Metrics.shop.internal:9464", true),
            ("evil.example", false),
            ("evil.example:9464", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example:9464", false),
            ("localhost@evil.example", false),
            ("user@127.0.0.1", false),
            ("", false),
            ("[::1", false),
        ] {
            assert_eq!(hosts.answer(host), answered, "{host}");
        }
    }
}
