//! The HTTP port.

use crate::process::{PATIENCE, Server};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// Status and body of a GET.
pub(crate) fn get(server: &Server, path: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(&server.http).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(socket, "GET {path} HTTP/1.1\r\nhost: weir\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// What the metrics say of one series, in exactly these words.
pub(crate) fn gauge(server: &Server, series: &str) -> Option<u64> {
    let (status, metrics) = get(server, "/metrics");
    assert_eq!(status, 200, "{metrics}");
    let sample = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    sample.map(|number| number.parse().unwrap())
}
