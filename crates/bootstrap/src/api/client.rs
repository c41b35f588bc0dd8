//! A client for one API server or the virtual address.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::{Context, Result};
use hyper_timeout::TimeoutConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::ConfigExt as _;
use kube::config::AuthInfo;
use kube::{Client, Config};
use serde_json::json;
use tower::ServiceBuilder;
use x509_parser::pem::parse_x509_pem;

use super::dial::{Connector, Dial};
use crate::Identity;
use crate::kubeconfig::base64;

/// An address on a bridge of this host answers at once or not at all.
const CONNECT: Duration = Duration::from_secs(2);
const READ: Duration = Duration::from_secs(30);

/// Must be called inside a tokio runtime. Makes no connection yet.
pub fn client(identity: &Identity, endpoint: Ipv4Addr, port: u16, dial: Dial) -> Result<Client> {
    // Two crates of the process may name different providers; the first call decides.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("https://{endpoint}:{port}");
    let mut config = Config::new(url.parse().with_context(|| format!("read the address {url}"))?);
    let (_, ca) = parse_x509_pem(identity.ca.as_bytes()).context("read the authority's certificate")?;
    config.root_cert = Some(vec![ca.contents]);
    config.auth_info = auth_info(identity)?;
    let connector = Connector { dial, to: SocketAddrV4::new(endpoint, port) };
    let connector = config.rustls_https_connector_with_connector(connector);
    let mut connector = TimeoutConnector::new(connector.with_context(|| format!("make a client for {url}"))?);
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_read_timeout(Some(READ));
    connector.set_reset_reader_on_write(true);
    let client = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build(connector);
    let service = ServiceBuilder::new().layer(config.base_uri_layer()).service(client);
    Ok(Client::new(service, config.default_namespace))
}

fn auth_info(identity: &Identity) -> Result<AuthInfo> {
    let user = json!({
        "client-certificate-data": base64(&identity.client.cert),
        "client-key-data": base64(&identity.client.key),
    });
    serde_json::from_value(user).context("build the client's identity")
}
