//! No open door by accident.

use super::settings::Settings;
use std::net::{IpAddr, SocketAddr};

/// An address that other machines can reach would be served to whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{setting} {address} can be reached from other machines, and without TLS and credentials whoever reaches it may \
     read, publish and delete everything; listen on 127.0.0.1, or say --insecure (insecure: true) where the network \
     itself keeps strangers out"
)]
pub struct ExposedAddress {
    /// `listen` or `http_listen`.
    pub setting: &'static str,
    /// Its address.
    pub address: SocketAddr,
}

impl Settings {
    /// Refuses to serve without credentials where other machines can reach the server, unless it is `insecure` by its
    /// owner's word. There are no settings for TLS and credentials yet, so every such address counts as open.
    ///
    /// # Errors
    /// The first address that is exposed.
    pub fn refuse_exposure(&self) -> Result<(), ExposedAddress> {
        if self.insecure {
            return Ok(());
        }
        for (setting, address) in [("listen", self.listen), ("http_listen", self.http_listen)] {
            if !is_loopback(address.ip()) {
                return Err(ExposedAddress { setting, address });
            }
        }
        Ok(())
    }
}

/// Whether only this machine reaches an address; `::ffff:127.0.0.1` is 127.0.0.1 in other letters.
fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}
