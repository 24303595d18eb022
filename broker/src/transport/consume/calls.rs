//! The calls that the unary RPCs and the frames of a stream share.

use crate::broker::{Broker, Joined};
use crate::model::{FetchLimits, LeaseRef, Refusal, SessionRef, limits};
use crate::telemetry::metrics;
use crate::transport::{decode, encode, status};
use weir_proto::server as wire;

pub(super) async fn fetch(broker: &Broker, request: wire::FetchRequest) -> Result<wire::FetchResponse, Refusal> {
    let session = decode::session(request.session)?;
    let said = session.held.is_some();
    let fetch = FetchLimits {
        max_messages: request.max_messages.max(1),
        // An answer is no larger than a request may be, however much the caller would take.
        max_bytes: request.max_bytes.min(limits::REQUEST_BYTES_MAX),
        wait_ms: request.wait_ms,
        lease_ms: request.lease_ms,
    };
    let fetched = broker.fetch(session, fetch).await?;
    Ok(wire::FetchResponse {
        deliveries: fetched.deliveries.into_iter().map(encode::delivery).collect(),
        waiting: fetched.waiting.map(encode::waiting),
        held: encode::held(said, fetched.held),
        notices: fetched.notices.into_iter().map(encode::notice).collect(),
    })
}

pub(super) async fn settle(
    broker: &Broker,
    session: SessionRef,
    settlements: Vec<wire::Settlement>,
) -> Result<wire::SettleResponse, Refusal> {
    let settles = decode::settlements(settlements)?;
    let leases: Vec<_> = settles.iter().map(|settle| settle.lease).collect();
    let results = broker.settle(session, settles).await?;
    metrics::settled(&results);
    Ok(wire::SettleResponse { results: encode::settle_results(&leases, results) })
}

pub(super) async fn extend(
    broker: &Broker,
    session: SessionRef,
    extensions: &[wire::Extension],
) -> Result<wire::ExtendResponse, Refusal> {
    let extensions = decode::extensions(extensions)?;
    let leases: Vec<_> = extensions.iter().map(|(lease, _)| *lease).collect();
    let results = broker.extend(session, extensions).await?;
    Ok(wire::ExtendResponse { results: encode::extend_results(&leases, results) })
}

pub(super) async fn heartbeat(
    broker: &Broker,
    request: wire::HeartbeatRequest,
) -> Result<wire::HeartbeatResponse, Refusal> {
    let session = decode::session(request.session)?;
    let (answer, joined) = heard(broker, session).await?;
    let notices = joined.notices.into_iter().map(encode::notice).collect();
    Ok(wire::HeartbeatResponse { notices, ..answer })
}

/// A heartbeat's answer without notices, and what it was made of.
pub(super) async fn heard(broker: &Broker, session: SessionRef) -> Result<(wire::HeartbeatResponse, Joined), Refusal> {
    let said = session.held.is_some();
    let mut joined = broker.heartbeat(session).await?;
    let held = encode::held(said, std::mem::take(&mut joined.held));
    Ok((wire::HeartbeatResponse { session_expires_unix_ms: joined.expires.get(), held, notices: Vec::new() }, joined))
}

pub(super) async fn begin(
    broker: &Broker,
    session: SessionRef,
    lease: LeaseRef,
) -> Result<wire::BeginResponse, Refusal> {
    let result = match broker.begin(session, lease).await {
        Ok(result) => {
            metrics::begun(&result);
            encode::begin_result(lease, result)
        }
        Err(refusal) if status::ends_the_call(refusal.reason) => return Err(refusal),
        Err(refusal) => wire::begin_response::Result::Refused(status::in_band(refusal)),
    };
    Ok(wire::BeginResponse { result: Some(result) })
}

pub(super) async fn complete(
    broker: &Broker,
    session: SessionRef,
    request: wire::CompleteRequest,
) -> Result<wire::CompleteResponse, Refusal> {
    let complete = decode::complete(request, &session.group.scope)?;
    let lease = complete.lease;
    let result = match broker.complete(session, complete).await {
        Ok(result) => {
            metrics::completed(&result);
            encode::complete_result(lease, result)
        }
        Err(refusal) if status::ends_the_call(refusal.reason) => return Err(refusal),
        Err(refusal) => wire::complete_response::Result::Refused(status::in_band(refusal)),
    };
    Ok(wire::CompleteResponse { result: Some(result) })
}

pub(super) async fn leave(broker: &Broker, session: SessionRef) -> Result<wire::LeaveResponse, Refusal> {
    broker.leave(session).await.map(|()| wire::LeaveResponse {})
}
