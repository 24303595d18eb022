//! A pretend payment provider: a process of its own with a ledger of its own, one line a payment.
//!
//! It is not idempotent, as many are not: told to pay twice, it pays twice, and its ledger shows it. It can be asked what it
//! did, by execution id. A request is one line, `pay EXECUTION CENTS` or `lookup EXECUTION`, and so is the answer: a
//! receipt, `nothing`, or `error WHY`.

use crate::Failure;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Longest time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest line, in bytes.
const LINE_BYTES_MAX: u64 = 1024;

/// One line of the ledger.
pub(crate) struct Payment {
    pub(crate) execution_id: String,
    pub(crate) cents: u64,
}

/// Serves until it is killed, one caller after the other.
pub(crate) async fn serve(ledger: &Path) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening {}", listener.local_addr()?);
    loop {
        let (caller, _) = listener.accept().await?;
        // A caller that goes away in the middle is no reason to stop.
        match timeout(PATIENCE, answer(caller, ledger)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("a caller was not answered: {error}"),
            Err(_) => eprintln!("a caller was too slow"),
        }
    }
}

async fn answer(caller: TcpStream, ledger: &Path) -> Result<(), Failure> {
    let mut caller = BufReader::new(caller);
    let mut line = String::new();
    (&mut caller).take(LINE_BYTES_MAX).read_line(&mut line).await?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let answer = match words.as_slice() {
        ["pay", execution_id, cents] => pay(ledger, execution_id, cents.parse()?)?,
        ["lookup", execution_id] => lookup(ledger, execution_id)?.unwrap_or_else(|| "nothing".to_owned()),
        _ => "error not understood".to_owned(),
    };
    caller.write_all(format!("{answer}\n").as_bytes()).await?;
    Ok(())
}

fn pay(ledger: &Path, execution_id: &str, cents: u64) -> Result<String, Failure> {
    let mut file = OpenOptions::new().create(true).append(true).open(ledger)?;
    file.write_all(format!("{execution_id} {cents}\n").as_bytes())?;
    file.sync_all()?;
    Ok(receipt(payments(ledger)?.len()))
}

fn lookup(ledger: &Path, execution_id: &str) -> Result<Option<String>, Failure> {
    let place = payments(ledger)?.iter().position(|payment| payment.execution_id == execution_id);
    Ok(place.map(|place| receipt(place + 1)))
}

fn receipt(number: usize) -> String {
    format!("receipt-{number}")
}

/// Everything that was ever paid, from the provider's own ledger.
pub(crate) fn payments(ledger: &Path) -> Result<Vec<Payment>, Failure> {
    if !ledger.exists() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(ledger)?;
    let payment = |line: &str| -> Result<Payment, Failure> {
        let (execution_id, cents) = line.split_once(' ').ok_or_else(|| format!("no payment: {line:?}"))?;
        Ok(Payment { execution_id: execution_id.to_owned(), cents: cents.parse()? })
    };
    text.lines().map(payment).collect()
}

/// The provider, as a worker or reconciler sees it.
#[derive(Clone)]
pub(crate) struct Provider {
    address: String,
}

impl Provider {
    pub(crate) fn at(address: &str) -> Self {
        Self { address: address.to_owned() }
    }

    /// Pays, and returns the receipt. Called twice, it pays twice.
    pub(crate) async fn pay(&self, execution_id: &str, cents: u64) -> Result<String, Failure> {
        self.ask(&format!("pay {execution_id} {cents}")).await
    }

    /// The receipt, if it ever paid for this execution.
    pub(crate) async fn lookup(&self, execution_id: &str) -> Result<Option<String>, Failure> {
        let answer = self.ask(&format!("lookup {execution_id}")).await?;
        Ok((answer != "nothing").then_some(answer))
    }

    async fn ask(&self, line: &str) -> Result<String, Failure> {
        let asking = async {
            let mut provider = BufReader::new(TcpStream::connect(&self.address).await?);
            provider.write_all(format!("{line}\n").as_bytes()).await?;
            let mut answer = String::new();
            (&mut provider).take(LINE_BYTES_MAX).read_line(&mut answer).await?;
            std::io::Result::Ok(answer)
        };
        let answer = timeout(PATIENCE, asking).await.map_err(|_| "the provider does not answer")??;
        match answer.strip_suffix('\n') {
            None => Err("the provider hung up".into()),
            Some(answer) if answer.starts_with("error ") => Err(format!("the provider: {answer}").into()),
            Some(answer) => Ok(answer.to_owned()),
        }
    }
}
