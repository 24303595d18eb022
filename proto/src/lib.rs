//! The wire types of weir, package `weir.v1`, in two flavours generated from the same protos.
//!
//! - [`v1`] is for clients: every message as a struct, and the client stubs.
//! - [`server`] is for the broker's edge: the service traits, and each field that holds a whole [`v1::Message`] as
//!   [`bytes::Bytes`]. Both look the same on the wire, so a producer's bytes are stored and delivered verbatim. Its
//!   client stubs send messages that were encoded before. Types that hold no whole message are those of [`v1`].
//! - [`mod@test`] is the clock of brokers built for tests.
//!
//! The richer error details of `google.rpc` come from `tonic-types`; [`v1::ErrorReason`] is what weir puts into them.

pub mod codec;
mod error;

/// `ErrorInfo.domain` of every error of weir.
pub const ERROR_DOMAIN: &str = "weir";

/// The encoded descriptors of package `weir.v1`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/weir.v1.bin"));

/// The encoded descriptors of package `weir.test.v1`, for reflection.
pub const TEST_FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/weir.test.v1.bin"));

/// The typed flavour of package `weir.v1`, with client stubs.
#[allow(clippy::all, reason = "generated")]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/typed/weir.v1.rs"));
}

/// The server's flavour of package `weir.v1`: whole messages as bytes, service traits, and client stubs that send
/// messages encoded before.
#[allow(clippy::all, reason = "generated")]
pub mod server {
    pub use crate::v1::*;

    include!(concat!(env!("OUT_DIR"), "/server/weir.v1.rs"));
}

/// Package `weir.test.v1`: service trait and client stub of the test clock.
#[allow(clippy::all, reason = "generated")]
pub mod test {
    include!(concat!(env!("OUT_DIR"), "/test/weir.test.v1.rs"));
}
