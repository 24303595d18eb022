//! A pretend payment provider: a process of its own, with a file of its own. It pays whatever it is told to, as often as it
//! is told to; each payment is one line of its file, and those lines are what the story is judged by.

use crate::Failure;
use std::collections::BTreeMap;
use std::path::Path;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Serves `pay EXECUTION AMOUNT` and `find EXECUTION`, a line each, until it is killed.
pub(crate) async fn serve(file: &str) -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening {}", listener.local_addr()?);
    loop {
        let (socket, _) = listener.accept().await?;
        answer(socket, Path::new(file)).await?;
    }
}

async fn answer(socket: TcpStream, file: &Path) -> Result<(), Failure> {
    let mut socket = BufReader::new(socket);
    let mut line = String::new();
    socket.read_line(&mut line).await?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let reply = match words.as_slice() {
        ["pay", execution, amount] => {
            let mut paid = tokio::fs::OpenOptions::new().create(true).append(true).open(file).await?;
            paid.write_all(format!("{execution} {amount}\n").as_bytes()).await?;
            paid.sync_all().await?;
            format!("receipt:{execution}")
        }
        ["find", execution] if payments(file)?.contains_key(*execution) => format!("receipt:{execution}"),
        ["find", _] => "nothing".to_owned(),
        _ => "what?".to_owned(),
    };
    socket.write_all(format!("{reply}\n").as_bytes()).await?;
    Ok(())
}

/// Says one line to the provider and returns its answer.
async fn say(provider: &str, line: String) -> Result<String, Failure> {
    let mut socket = BufReader::new(TcpStream::connect(provider).await?);
    socket.write_all(format!("{line}\n").as_bytes()).await?;
    let mut reply = String::new();
    socket.read_line(&mut reply).await?;
    Ok(reply.trim().to_owned())
}

/// Pays, and returns the receipt.
pub(crate) async fn pay(provider: &str, execution: &str, amount: u64) -> Result<String, Failure> {
    say(provider, format!("pay {execution} {amount}")).await
}

/// The receipt, if the provider ever paid for this execution.
pub(crate) async fn find(provider: &str, execution: &str) -> Result<Option<String>, Failure> {
    let reply = say(provider, format!("find {execution}")).await?;
    Ok((reply != "nothing").then_some(reply))
}

/// How often each execution was paid, from the provider's own file.
pub(crate) fn payments(file: &Path) -> Result<BTreeMap<String, u64>, Failure> {
    let mut payments = BTreeMap::new();
    if file.exists() {
        for line in std::fs::read_to_string(file)?.lines() {
            let execution = line.split_whitespace().next().unwrap_or_default();
            *payments.entry(execution.to_owned()).or_default() += 1;
        }
    }
    Ok(payments)
}
