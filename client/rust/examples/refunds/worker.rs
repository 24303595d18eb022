//! A worker. The client library begins before it calls the handler and completes after it; the handler pays.

use crate::provider::Provider;
use crate::{Failure, GROUP, POLICY, SESSION_TIMEOUT_MS, TENANT};
use std::future::pending;
use weir_client::{Client, ConsumerOptions, HandlerError, Job, Outcome};

/// What becomes of a worker at its first refund.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It works.
    Well,
    /// It begins, and hangs before it pays.
    HangsBeforePaying,
    /// It begins and pays, and hangs before it completes.
    HangsAfterPaying,
}

impl Mood {
    const ALL: [Self; 3] = [Self::Well, Self::HangsBeforePaying, Self::HangsAfterPaying];

    /// The word for it on the command line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::HangsBeforePaying => "hangs-before-paying",
            Self::HangsAfterPaying => "hangs-after-paying",
        }
    }
}

/// Works, one refund at a time, until it is killed.
pub(crate) async fn run(endpoint: &str, provider: &str, name: &str, mood: &str) -> Result<(), Failure> {
    let mood = Mood::ALL.into_iter().find(|known| known.word() == mood).ok_or_else(|| format!("no mood: {mood}"))?;
    let provider = Provider::at(provider);
    let options = ConsumerOptions::new(TENANT, POLICY, GROUP, name);
    let options = options.session_timeout_ms(SESSION_TIMEOUT_MS).concurrency(1);
    let worker = Client::connect(endpoint)?.worker(options, move |job| refund(job, provider.clone(), mood));
    Ok(worker.run().await?)
}

async fn refund(job: Job, provider: Provider, mood: Mood) -> Result<Outcome, HandlerError> {
    // Without a token nothing was begun: this is another event of the task, such as the result of a refund.
    if job.fencing_token.is_none() {
        return Ok(Outcome::done());
    }
    let message = job.message();
    let cents = std::str::from_utf8(&message.payload).ok().and_then(|text| text.parse().ok());
    let Some(cents) = cents else { return Ok(Outcome::rejected()) };
    println!("begun {}", message.execution_id);
    if mood == Mood::HangsBeforePaying {
        return pending().await;
    }
    // Where paying fails halfway nobody knows if the money moved: the library then reports the execution UNKNOWN.
    let receipt = provider.pay(&message.execution_id, cents).await.map_err(HandlerError::failed)?;
    println!("paid {}", message.execution_id);
    if mood == Mood::HangsAfterPaying {
        return pending().await;
    }
    Ok(Outcome::completed(receipt))
}
