//! A client for one API server or the virtual address.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde_json::json;
use x509_parser::pem::parse_x509_pem;

use crate::Identity;
use crate::kubeconfig::base64;

/// An address on a bridge of this host answers at once or not at all.
const CONNECT: Duration = Duration::from_secs(2);
const READ: Duration = Duration::from_secs(30);

/// Must be called inside a tokio runtime. Makes no connection yet.
pub fn client(identity: &Identity, endpoint: Ipv4Addr, port: u16) -> Result<Client> {
    // Two crates of the process may name different providers; the first call decides.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("https://{endpoint}:{port}");
    let mut config = Config::new(url.parse().with_context(|| format!("read the address {url}"))?);
    let (_, ca) = parse_x509_pem(identity.ca.as_bytes()).context("read the authority's certificate")?;
    config.root_cert = Some(vec![ca.contents]);
    config.auth_info = auth_info(identity)?;
    config.connect_timeout = Some(CONNECT);
    config.read_timeout = Some(READ);
    config.reset_reader_on_write = true;
    Client::try_from(config).with_context(|| format!("make a client for {url}"))
}

fn auth_info(identity: &Identity) -> Result<AuthInfo> {
    let user = json!({
        "client-certificate-data": base64(&identity.client.cert),
        "client-key-data": base64(&identity.client.key),
    });
    serde_json::from_value(user).context("build the client's identity")
}
