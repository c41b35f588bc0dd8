//! An engine that wants TLS, and to know who we are. Only the authority in the directory is believed, as by the docker
//! command: those of this host vouch for web sites, not for engines.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bollard::Docker as Client;
use model::{Fault, Reason};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::{tcp, transport};

const PORT: u16 = 2376;

pub fn client(host: &str, certs: &Path) -> Result<Client> {
    let (name, port) = tcp::split(host, PORT);
    let server =
        ServerName::try_from(name.to_owned()).with_context(|| format!("{name} is no name of a host"))?;
    let connector = TlsConnector::from(Arc::new(config(certs)?));
    let name = name.to_owned();
    let dial = move || {
        let (connector, server, name) = (connector.clone(), server.clone(), name.clone());
        async move { connector.connect(server, tcp::connect(&name, port).await?).await }
    };
    Ok(transport::client(dial)?)
}

fn config(certs: &Path) -> Result<ClientConfig> {
    let at = |name: &str| certs.join(name);
    let read = |name: &str| -> Result<Vec<CertificateDer<'static>>> {
        let all = CertificateDer::pem_file_iter(at(name)).and_then(Iterator::collect);
        all.with_context(|| format!("read the certificates in {}", at(name).display()))
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(read("ca.pem")?);
    let key = at("key.pem");
    let own = PrivateKeyDer::from_pem_file(&key).with_context(|| format!("read {}", key.display()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.with_root_certificates(roots).with_client_auth_cert(read("cert.pem")?, own);
    config.with_context(|| format!("cert.pem and key.pem in {} do not belong together", certs.display()))
}

/// What to do depends on who refuses whom.
pub fn refused(host: &str, certs: &Path, why: &str) -> Fault {
    let certs = certs.display();
    let said = why.to_lowercase();
    let about_us = ["alert", "certificaterequired"].iter().any(|word| said.contains(word));
    let advice = if said.contains("invalid peer certificate") {
        format!(
            "The engine shows a certificate that {certs}/ca.pem does not vouch for, or of another name: see DOCKER_CERT_PATH"
        )
    } else if about_us {
        format!(
            "The engine does not know {certs}/cert.pem: it takes those of the authority in its --tlscacert"
        )
    } else if why.contains(&*certs.to_string()) {
        "DOCKER_CERT_PATH names the directory of ca.pem, cert.pem and key.pem (~/.docker without it)"
            .to_owned()
    } else {
        "Start the engine with --tlsverify and -H tcp://…:2376, or see DOCKER_HOST".to_owned()
    };
    let message = format!("The Docker engine at {host} cannot be reached: {why}");
    Fault::new(Reason::DriverNotHealthy, message).advice(advice)
}
