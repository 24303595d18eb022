//! Settings of a publisher.

use crate::error::ClientError;
use std::time::Duration;

/// Most messages a request may carry.
const REQUEST_MESSAGES_MAX: usize = 1000;
/// Most bytes a batch may gather; a single larger message goes alone.
const BATCH_BYTES_MAX: usize = 15 << 20;
/// Most bytes in flight; what a count of bytes can express.
const BYTES_IN_FLIGHT_MAX: usize = 1 << 31;

/// Bounds of batches, of memory, and of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherOptions {
    /// Most messages in one request, 1 to 1,000; 500 unless set.
    pub batch_messages: usize,
    /// Most bytes of messages in one request, 1 to 15 MiB; 1 MiB unless set. A larger message goes alone.
    pub batch_bytes: usize,
    /// How long the first message of a quiet channel waits for company; not at all unless set, since a busy channel makes
    /// batches by itself.
    pub linger: Duration,
    /// Most bytes of messages that are handed over and not answered, over all channels, up to 2 GiB; 64 MiB unless set.
    /// Above it, handing over waits.
    pub bytes_in_flight: usize,
    /// Most calls in flight, over all channels, 1 to 1,000; 64 unless set. A channel has one at most.
    pub calls_in_flight: usize,
    /// Longest time from handing a message over to its answer; 60 s unless set.
    pub delivery_timeout: Duration,
}

impl Default for PublisherOptions {
    fn default() -> Self {
        Self {
            batch_messages: 500,
            batch_bytes: 1 << 20,
            linger: Duration::ZERO,
            bytes_in_flight: 64 << 20,
            calls_in_flight: 64,
            delivery_timeout: Duration::from_secs(60),
        }
    }
}

impl PublisherOptions {
    pub(super) fn validate(&self) -> Result<(), ClientError> {
        let bounds = [
            ("batch_messages", self.batch_messages, REQUEST_MESSAGES_MAX),
            ("batch_bytes", self.batch_bytes, BATCH_BYTES_MAX),
            ("bytes_in_flight", self.bytes_in_flight, BYTES_IN_FLIGHT_MAX),
            ("calls_in_flight", self.calls_in_flight, 1000),
        ];
        for (name, value, most) in bounds {
            if value == 0 || value > most {
                let rule = format!("{value} is not within 1 and {most}");
                return Err(ClientError::invalid(format!("options.{name}"), rule));
            }
        }
        Ok(())
    }

    /// The room that so many bytes take; a message larger than all the room there is takes all of it.
    pub(super) fn room_for(&self, bytes: usize) -> u32 {
        let most = self.bytes_in_flight.min(BYTES_IN_FLIGHT_MAX);
        u32::try_from(bytes.clamp(1, most)).unwrap_or(u32::MAX)
    }
}
