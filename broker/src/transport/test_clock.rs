//! `TestClockService`: broker time moved from outside, for tests through real processes. Never in a release build.

use super::status;
use crate::broker::Broker;
use crate::clock::Clock;
use crate::model::UnixMillis;
use std::sync::Arc;
use tonic::{Request, Response, Status};
use weir_proto::test::{self as wire, test_clock_service_server::TestClockService};

#[cfg(not(debug_assertions))]
compile_error!("the feature test-clock is for debug builds: whoever reaches the port could move broker time");

#[derive(Clone)]
pub(super) struct TestClock {
    pub(super) broker: Broker,
    pub(super) clock: Arc<dyn Clock>,
}

impl TestClock {
    /// Broker time, after all that was due at it has been done: a call is carried out after what was due before it.
    async fn settled(&self) -> Result<UnixMillis, Status> {
        let status = self.broker.status().await.map_err(|refusal| status::status(&refusal))?;
        Ok(status.at)
    }
}

#[tonic::async_trait]
impl TestClockService for TestClock {
    async fn advance(&self, request: Request<wire::AdvanceRequest>) -> Result<Response<wire::AdvanceResponse>, Status> {
        let millis = request.into_inner().millis;
        self.clock.at_least(self.clock.now().plus(millis));
        // The first call makes the broker look at its clock, the second one is behind what that brought due.
        self.settled().await?;
        let now = self.settled().await?;
        Ok(Response::new(wire::AdvanceResponse { now_unix_ms: now.get() }))
    }

    async fn now(&self, _request: Request<wire::NowRequest>) -> Result<Response<wire::NowResponse>, Status> {
        Ok(Response::new(wire::NowResponse { now_unix_ms: self.clock.now().get() }))
    }
}
