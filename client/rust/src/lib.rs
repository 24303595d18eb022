//! The Rust client of weir.
//!
//! - [`Client`] is the way to one broker: a connection that opens with its first call and again when it broke, the plain
//!   services, and the parts below.
//! - [`Publisher`] puts messages into channels: batched, in order per channel, repeated safely.
//! - [`Worker`] acts on requests: it begins each before its handler runs and reports what became of it, so that an
//!   effect happens once even though a delivery may come twice.
//! - [`Subscriber`] watches: it takes messages and settles them, and never begins.
//!
//! All of it runs on tokio. Errors are [`ClientError`]s, whose reasons are the broker's closed set.
//!
//! ```no_run
//! # async fn demo() -> Result<(), weir_client::ClientError> {
//! use std::time::Duration;
//! use weir_client::v1::GetStatusRequest;
//!
//! let client = weir_client::Client::connect("http://127.0.0.1:7447")?;
//! let admin = client.admin_service();
//! let status = client
//!     .call(Duration::from_secs(10), || {
//!         let mut admin = admin.clone();
//!         async move { admin.get_status(GetStatusRequest::default()).await }
//!     })
//!     .await?;
//! println!("{} channels", status.channels);
//! # Ok(())
//! # }
//! ```

mod backoff;
mod connect;
mod consumer;
mod ending;
mod error;
#[cfg(test)]
mod fake;
mod heartbeat;
mod job;
mod lease;
mod options;
mod outcome;
mod publisher;
mod retry;
mod running;
mod session;
mod settler;
mod subscriber;
mod worker;

pub use backoff::BackoffBounds;
pub use connect::{Client, ClientBuilder};
pub use error::{ClientError, Code};
pub use job::Job;
pub use lease::CancelCause;
pub use options::ConsumerOptions;
pub use outcome::{HandlerError, Outcome, Report};
pub use publisher::{Pending, Published, Publisher, PublisherOptions};
pub use running::Running;
pub use subscriber::Subscriber;
pub use tokio_util::sync::CancellationToken;
pub use weir_proto::v1;
pub use weir_proto::v1::ErrorReason;
pub use worker::Worker;
