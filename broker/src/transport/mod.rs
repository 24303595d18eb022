//! The wire: gRPC services and the HTTP port, over the same handle that embedders hold.
//!
//! One file a service. A request is decoded once (`decode`) into the values of `model`, an answer is encoded
//! once (`encode`); the messages themselves pass through as bytes. Every refusal becomes a status in one place
//! (`status`). Nothing here decides anything.
//!
//! - *Sizes.* The broker refuses what is too large and names the limit; the transport's own limit lies well above, so that
//!   the refusal is the broker's and the connection stays usable.
//! - *Cancelling.* Unary calls hold no task: a caller that is gone drops the call, and with it the broker's future, which
//!   is how a fetch is given up.
//! - *Streams* are answered in order, keep a bounded window on their way, and are ended by the server when it goes down.

mod accept;
mod admin;
mod channel;
mod consume;
mod decode;
mod encode;
mod ending;
mod execution;
mod group;
mod health;
pub mod http;
mod in_flight;
mod paging;
mod publish;
mod server;
mod status;
#[cfg(feature = "test-clock")]
mod test_clock;

pub use server::{GrpcServer, ServeError, serve_grpc};

#[cfg(test)]
mod tests;
