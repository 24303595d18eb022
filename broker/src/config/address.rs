//! Addresses to listen on.

use super::node::shown;
use std::net::SocketAddr;

/// An IP address with a port.
///
/// # Errors
/// What would be right.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let hint = match text.rsplit_once(':') {
            Some(("localhost", _)) => "; for localhost write 127.0.0.1 or [::1]",
            Some(("" | "*", _)) => "; for all addresses write 0.0.0.0 or [::]",
            _ => "",
        };
        format!("expected an IP address and a port such as 127.0.0.1:7447, found `{}`{hint}", shown(text))
    })
}

/// Whether two listeners cannot both have what they ask for. Port 0 is whatever is free, so it never clashes.
pub(super) fn clash(a: SocketAddr, b: SocketAddr) -> bool {
    a == b && a.port() != 0
}
