//! A server with a certificate, which has nothing and remembers who asked.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

pub struct Server {
    /// Of those who trusted the certificate.
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// `cert` and `key` lie in the directory. It ends with the test.
    pub fn listen(dir: &Path, address: &str) -> Server {
        let chain = vec![CertificateDer::from_pem_file(dir.join("cert")).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(dir.join("key")).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions of TLS")
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .expect("a certificate and its key");
        // Here, because the network is that of the calling thread.
        let listener = TcpListener::bind(address).expect("listen");
        let (config, requests) = (Arc::new(config), Arc::new(Mutex::new(Vec::new())));
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
                let connection =
                    ServerConnection::new(config.clone()).expect("a configuration that is right");
                let mut stream = StreamOwned::new(connection, stream);
                let mut request = [0; 4096];
                // Whoever does not trust us ends the connection.
                let Ok(length) = stream.read(&mut request) else { continue };
                seen.lock()
                    .expect("nobody panics")
                    .push(String::from_utf8_lossy(&request[..length]).into_owned());
                let _ = stream
                    .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Server { requests }
    }

    pub fn was_asked_by(&self, whom: &str) -> bool {
        self.requests.lock().expect("nobody panics").iter().any(|r| r.to_lowercase().contains(whom))
    }
}
