//! The Rust client of weir.
//!
//! - [`Client`] is the way to one broker: a connection that opens with its first call and again when it broke, the plain
//!   services, and the parts below.
//! - [`Publisher`] puts messages into channels: batched, in order per channel, repeated safely.
//! - [`Worker`] takes a group's messages and acts on requests: begin, handle, complete. [`Subscriber`] only watches.
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
mod error;
#[cfg(test)]
mod fake;
mod heartbeat;
mod holding;
mod job;
mod publisher;
mod retry;

pub use backoff::BackoffBounds;
pub use connect::{Client, ClientBuilder};
pub use consumer::{ConsumerOptions, Subscriber, Worker};
pub use error::{ClientError, Code};
pub use job::{HandlerError, Job, Outcome};
pub use publisher::{Pending, Published, Publisher, PublisherOptions};
pub use weir_proto::v1;
pub use weir_proto::v1::ErrorReason;
