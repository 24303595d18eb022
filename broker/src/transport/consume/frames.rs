//! Frames of a consume stream: what a member's frame asks for, and how deliveries are put into frames.

use super::calls;
use crate::broker::Broker;
use crate::model::{Delivery, Refusal, SessionRef};
use crate::transport::in_flight::Call;
use crate::transport::{decode, encode, status};
use weir_proto::server as wire;
use wire::consume_request::Frame as Asked;
use wire::consume_response::Frame;

/// Bytes of messages in one frame of deliveries; a larger message has a frame of its own.
const FRAME_BYTES_MAX: usize = 1024 * 1024;

/// What a member's frame is.
pub(super) enum Taken {
    /// It lets so many more messages and bytes come.
    Credit(u32, u64),
    /// A call, and the bytes it keeps.
    Call(Call<Answer>, usize),
    /// The member leaves: the last call.
    Leave(Call<Answer>),
}

/// What a call came to: the frame that answers it, and notices that came with it.
pub(super) struct Answer {
    pub(super) frame: wire::ConsumeResponse,
    pub(super) notices: Vec<wire::Notice>,
}

/// Reads a frame of the session's stream.
pub(super) fn take(broker: &Broker, session: &SessionRef, request: wire::ConsumeRequest) -> Taken {
    let id = request.request_id;
    let broker = broker.clone();
    let session = session.clone();
    match request.frame {
        Some(Asked::Credit(credit)) => Taken::Credit(credit.messages, credit.bytes),
        Some(Asked::Settle(settle)) => call(id, 0, async move {
            unset(settle.session)?;
            calls::settle(&broker, session, settle.settlements).await.map(Frame::Settle)
        }),
        Some(Asked::Extend(extend)) => call(id, 0, async move {
            unset(extend.session)?;
            calls::extend(&broker, session, &extend.extensions).await.map(Frame::Extend)
        }),
        Some(Asked::Begin(begin)) => call(id, 0, async move {
            unset(begin.session)?;
            let lease = decode::lease(begin.epoch, begin.offset);
            calls::begin(&broker, session, lease).await.map(Frame::Begin)
        }),
        Some(Asked::Complete(mut complete)) => {
            let bytes = complete.publishes.iter().map(|follow_up| follow_up.message.len()).sum();
            call(id, bytes, async move {
                unset(complete.session.take())?;
                calls::complete(&broker, session, complete).await.map(Frame::Complete)
            })
        }
        Some(Asked::Heartbeat(heartbeat)) => Taken::Call(Box::pin(heard(id, broker, session, heartbeat)), 0),
        Some(Asked::Leave(leave)) => Taken::Leave(Box::pin(answered(id, async move {
            unset(leave.session)?;
            calls::leave(&broker, session).await.map(Frame::Leave)
        }))),
        Some(Asked::Join(_)) => {
            let refusal = Refusal::invalid("join", "only the first frame joins");
            call(id, 0, async { Err(refusal) })
        }
        None => call(id, 0, async { Err(Refusal::invalid("frame", "required, of a kind this broker knows")) }),
    }
}

fn call(id: u64, bytes: usize, work: impl Future<Output = Result<Frame, Refusal>> + Send + 'static) -> Taken {
    Taken::Call(Box::pin(answered(id, work)), bytes)
}

async fn answered(id: u64, work: impl Future<Output = Result<Frame, Refusal>> + Send) -> Answer {
    let frame = work.await.unwrap_or_else(|refusal| Frame::Refused(status::in_band(refusal)));
    Answer { frame: wire::ConsumeResponse { request_id: id, frame: Some(frame) }, notices: Vec::new() }
}

async fn heard(id: u64, broker: Broker, session: SessionRef, heartbeat: wire::HeartbeatRequest) -> Answer {
    let mut notices = Vec::new();
    let work = async {
        unset(heartbeat.session)?;
        let session = SessionRef { held: decode::held(heartbeat.held), ..session };
        let (answer, joined) = calls::heard(&broker, session).await?;
        notices = joined.notices.into_iter().map(encode::notice).collect();
        Ok(Frame::Heartbeat(answer))
    };
    let answer = answered(id, work).await;
    Answer { notices, ..answer }
}

fn unset(session: Option<wire::Session>) -> Result<(), Refusal> {
    match session {
        None => Ok(()),
        Some(_) => Err(Refusal::invalid("session", "unset on a stream: the join has named it")),
    }
}

/// A frame that answers nothing.
pub(super) const fn unasked(frame: Frame) -> wire::ConsumeResponse {
    wire::ConsumeResponse { request_id: 0, frame: Some(frame) }
}

/// Deliveries in frames of bounded size, in order.
pub(super) fn deliveries(deliveries: Vec<Delivery>) -> Vec<wire::ConsumeResponse> {
    let mut frames = Vec::new();
    let mut frame = wire::Deliveries::default();
    let mut bytes = 0;
    for delivery in deliveries {
        let size = delivery.message.len();
        if bytes + size > FRAME_BYTES_MAX && !frame.deliveries.is_empty() {
            frames.push(unasked(Frame::Deliveries(std::mem::take(&mut frame))));
            bytes = 0;
        }
        bytes += size;
        frame.deliveries.push(encode::delivery(delivery));
    }
    if !frame.deliveries.is_empty() {
        frames.push(unasked(Frame::Deliveries(frame)));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ChannelRef, Epoch, Offset, UnixMillis};

    fn of_size(offset: u64, bytes: usize) -> Delivery {
        Delivery {
            channel: ChannelRef { policy: "events".into(), tenant: "acme".into(), agent: "desk".into() },
            offset: Offset(offset),
            task_id: "t".into(),
            message: vec![0; bytes].into(),
            epoch: Epoch(1),
            attempt: 1,
            acquired: 1,
            failed: 0,
            lease_lost: 0,
            published_at: UnixMillis(0),
            lease_expires: None,
            time_left_ms: None,
            execution: None,
            skipped: Vec::new(),
        }
    }

    #[test]
    fn deliveries_come_in_order_in_frames_of_bounded_size_and_a_large_message_alone() {
        let sizes = [10, FRAME_BYTES_MAX - 10, 1, 3 * FRAME_BYTES_MAX, 5, 5];
        let given = sizes.iter().enumerate().map(|(n, bytes)| of_size(n as u64, *bytes)).collect();
        let offsets: Vec<Vec<u64>> = deliveries(given)
            .into_iter()
            .map(|frame| match frame.frame {
                Some(Frame::Deliveries(frame)) => frame.deliveries.iter().map(|d| d.offset).collect(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(offsets, [vec![0, 1], vec![2], vec![3], vec![4, 5]]);
        assert!(deliveries(Vec::new()).is_empty());
    }
}
