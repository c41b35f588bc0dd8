use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The whole answer to `GET /`. The calling thread is in the test's network namespace, so this is
/// "from the host".
pub fn http_get(address: &str) -> Result<String, String> {
    http_get_path(address, "/")
}

pub fn http_get_path(address: &str, path: &str) -> Result<String, String> {
    let mut stream =
        TcpStream::connect_timeout(&address.parse().map_err(|e| format!("{e}"))?, Duration::from_secs(2))
            .map_err(|e| e.to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).map_err(|e| e.to_string())?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).map_err(|e| e.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|e| e.to_string())?;
    Ok(answer)
}
