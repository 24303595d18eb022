//! `weir health`: one plain HTTP request to a running server, for containers that have no other client.

use anyhow::Context as _;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// How long to wait for the connection, and for each piece of the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Most characters of an answer's body that are printed.
const BODY_CHARS_MAX: usize = 1_000;

/// Asks the server at `address` for `/readyz` and prints what it says. Ready is exit code 0, everything else 1.
///
/// # Errors
/// If there is no answer, or what answers does not speak HTTP.
pub(crate) fn run(address: SocketAddr, out: &mut impl Write) -> anyhow::Result<ExitCode> {
    let address = reachable(address);
    let answer = ask(address).with_context(|| format!("no answer from http://{address}/readyz"))?;
    let (status, body) = parts(&answer).with_context(|| format!("what answers at {address} does not speak HTTP"))?;
    let word = if status == 200 { "ready" } else { "not ready" };
    let body: String = body.trim().chars().filter(|c| !c.is_control() || *c == '\n').take(BODY_CHARS_MAX).collect();
    let colon = if body.is_empty() { "" } else { ": " };
    writeln!(out, "{word} ({status}){colon}{body}")?;
    Ok(if status == 200 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An address one listens on, as one that can be called: 0.0.0.0 is everywhere, so it is here too.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn ask(address: SocketAddr) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Status and body of an answer.
fn parts(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut words = head.lines().next()?.split(' ');
    if !words.next()?.starts_with("HTTP/1.") {
        return None;
    }
    Some((words.next()?.parse().ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Answers one caller with `answer` and returns what it asked.
    fn asked_of(answer: &'static str) -> (anyhow::Result<ExitCode>, String, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                asked.extend(byte);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        let mut out = Vec::new();
        let code = run(SocketAddr::from(([0, 0, 0, 0], port)), &mut out);
        (code, String::from_utf8(out).unwrap(), server.join().unwrap())
    }

    #[test]
    fn a_ready_server_is_0_and_any_other_status_is_1() {
        let (code, out, asked) = asked_of("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        assert_eq!((code.unwrap(), out.as_str()), (ExitCode::SUCCESS, "ready (200): ok\n"));
        assert!(asked.starts_with("GET /readyz HTTP/1.1\r\nHost: 127.0.0.1:"), "{asked}");
        let (code, out, _) = asked_of("HTTP/1.1 503 Service Unavailable\r\n\r\nrecovering\u{1b}[2J");
        assert_eq!((code.unwrap(), out.as_str()), (ExitCode::FAILURE, "not ready (503): recovering[2J\n"));
    }

    #[test]
    fn silence_and_other_protocols_are_errors() {
        for answer in ["", "220 mail ready\r\n\r\n", "HTTP/1.1 \r\n\r\n"] {
            let (code, _, _) = asked_of(answer);
            assert!(format!("{:#}", code.unwrap_err()).contains("does not speak HTTP"), "{answer}");
        }
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = run(free, &mut Vec::new()).unwrap_err();
        assert!(format!("{error:#}").contains("no answer from http://127.0.0.1:"));
    }
}
