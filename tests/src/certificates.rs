//! What an engine with TLS and its clients need, made as Docker's documentation tells it, by openssl.

use std::path::Path;
use std::process::Command;

/// `ca.pem`, `cert.pem` and `key.pem` as clients have them; `server-cert.pem` and `server-key.pem` for `address`.
pub fn make(dir: &Path, address: &str) {
    std::fs::create_dir_all(dir).expect("make a directory for certificates");
    let script = format!(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout ca-key.pem -out ca.pem -subj /CN=ca -days 2
        sign() {{
            openssl req -newkey rsa:2048 -nodes -keyout $1key.pem -out $1csr -subj /CN=$2
            printf \"$3\" > $1ext
            openssl x509 -req -in $1csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -out $1cert.pem -extfile $1ext -days 2
        }}
        sign server- engine 'subjectAltName = IP:{address}\\nextendedKeyUsage = serverAuth\\n'
        sign '' client 'extendedKeyUsage = clientAuth\\n'"
    );
    let made = Command::new("sh").args(["-ec", &script]).current_dir(dir).output().expect("run sh");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}
