//! What we change in kubeadm's CoreDNS.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, ensure};
use model::names::HOST_HOST;
use serde_json::{Value, json};

/// The first probe usually comes a moment too early; the default period of 10 s is then the
/// longest wait of a whole start.
pub fn change_deployment(deployment: &mut Value, replicas: u32) -> Result<()> {
    let spec = deployment.get_mut("spec").context("CoreDNS's Deployment has no spec")?;
    spec["replicas"] = json!(replicas);
    let probe = spec
        .pointer_mut("/template/spec/containers/0/readinessProbe")
        .context("CoreDNS's Deployment has no readiness probe")?;
    probe["periodSeconds"] = json!(1);
    Ok(())
}

pub fn change_config(config: &mut Value, host: Ipv4Addr, log: bool) -> Result<()> {
    let corefile = config.pointer_mut("/data/Corefile").context("CoreDNS's ConfigMap has no Corefile")?;
    let text = corefile.as_str().context("CoreDNS's Corefile is no text")?;
    *corefile = json!(change_corefile(text, host, log)?);
    Ok(())
}

/// minikube's two changes, made before the plugins they must come before.
fn change_corefile(corefile: &str, host: Ipv4Addr, log: bool) -> Result<String> {
    let hosts = format!("hosts {{\n   {host} {HOST_HOST}\n   fallthrough\n}}");
    let mut text = String::new();
    let mut hosts_done = false;
    for line in corefile.lines() {
        let word = line.trim_start();
        let indent = &line[..line.len() - word.len()];
        if log && word == "errors" {
            text.push_str(&format!("{indent}log\n"));
        }
        if word.starts_with("forward ") && !hosts_done {
            hosts.lines().for_each(|l| text.push_str(&format!("{indent}{l}\n")));
            hosts_done = true;
        }
        text.push_str(line);
        text.push('\n');
    }
    ensure!(hosts_done, "CoreDNS's Corefile forwards nothing");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COREFILE: &str = ".:53 {\n    errors\n    health {\n       lameduck 5s\n    }\n    \
                            forward . /etc/resolv.conf {\n       max_concurrent 1000\n    }\n    loop\n}\n";

    #[test]
    fn the_host_has_a_name() {
        insta::assert_snapshot!(change_corefile(COREFILE, Ipv4Addr::new(192, 168, 49, 1), true).unwrap());
    }

    #[test]
    fn the_log_is_optional() {
        let text = change_corefile(COREFILE, Ipv4Addr::new(192, 168, 49, 1), false).unwrap();
        assert!(!text.contains("log"));
    }

    #[test]
    fn a_corefile_we_do_not_know_is_an_error() {
        assert!(change_corefile(".:53 {\n}\n", Ipv4Addr::LOCALHOST, true).is_err());
    }
}
