//! Asks for leave to act. After any answer but granted nothing is done.

use crate::backoff::Backoff;
use crate::connect::Client;
use crate::error::ClientError;
use crate::lease::Lease;
use crate::session::Session;
use tokio::time::sleep;
use weir_proto::v1::begin_response::Result as Answer;
use weir_proto::v1::{AlreadyFinal, BeginRequest, BeginResponse};

/// Whether to act.
#[derive(Debug)]
pub(super) enum Begin {
    /// Act, under this token.
    Granted(u64),
    /// It has ended before, like this.
    Final(AlreadyFinal),
    /// The lease is over, for this reason.
    Over(&'static str),
    /// The question was refused for good; the lease goes on.
    Refused(ClientError),
    /// The work was called off, or this process stops, before an answer came.
    Stopped,
}

/// Asks until there is an answer: the same lease gets the same one again.
pub(super) async fn begin(client: &Client, session: &Session, lease: &Lease) -> Begin {
    let mut backoff = Backoff::new(client.settings().backoff);
    loop {
        let epoch = lease.epoch();
        let error = match ask(client, session, lease).await {
            Ok(response) => match response.result {
                Some(Answer::Granted(granted)) => return Begin::Granted(granted.fencing_token),
                Some(Answer::AlreadyFinal(first)) => return Begin::Final(first),
                Some(Answer::InProgress(_)) => return Begin::Over("begun by another holder"),
                Some(Answer::HeldUnknown(_)) => return Begin::Over("held as unknown"),
                Some(Answer::Expired(_)) => return Begin::Over("expired"),
                Some(Answer::Cancelled(_)) => return Begin::Over("cancelled"),
                // The lease went on under another epoch while the call was on its way.
                Some(Answer::LeaseLost(_)) if lease.epoch() != epoch => continue,
                Some(Answer::LeaseLost(_)) => return Begin::Over("lost"),
                Some(Answer::Refused(refusal)) => ClientError::from(refusal),
                None => ClientError::nonsense("the answer to a begin says nothing"),
            },
            Err(_) if lease.is_lost() => return Begin::Over("lost"),
            Err(_) if lease.cancel.is_cancelled() => return Begin::Stopped,
            Err(error) => error,
        };
        if !error.retryable {
            return Begin::Refused(error);
        }
        tokio::select! {
            () = sleep(backoff.next(error.retry_after)) => {}
            () = lease.cancel.cancelled() => {}
        }
    }
}

async fn ask(client: &Client, session: &Session, lease: &Lease) -> Result<BeginResponse, ClientError> {
    let begin = || {
        let request = BeginRequest { session: Some(session.wire(None)), epoch: lease.epoch(), offset: lease.offset };
        let mut service = client.consume_service();
        async move { service.begin(request).await }
    };
    client.patience(None, lease.cancel.clone()).call(begin).await
}
