//! etcd's members, by etcdctl in a control plane: commands and what their answers mean. And by the port for other
//! members, which needs no majority.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::paths::CERTS;
use crate::pki::leaf;
use crate::{Identity, Pki, api};

const PEER_PORT: u16 = 2380;
const PEER_ANSWERS: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Member {
    #[serde(rename = "ID")]
    pub id: u64,
    /// Empty until it has first started.
    #[serde(default)]
    pub name: String,
    #[serde(default, rename = "peerURLs")]
    pub peers: Vec<String>,
    #[serde(default, rename = "isLearner")]
    pub learner: bool,
}

#[derive(Deserialize)]
struct Members {
    members: Vec<Member>,
}

pub fn peer_url(ip: Ipv4Addr) -> String {
    format!("https://{ip}:{PEER_PORT}")
}

fn etcdctl(words: &[&str]) -> Vec<String> {
    etcdctl_at(Ipv4Addr::LOCALHOST, words)
}

fn etcdctl_at(ip: Ipv4Addr, words: &[&str]) -> Vec<String> {
    let mut argv = vec![
        "etcdctl".to_owned(),
        format!("--endpoints=https://{ip}:2379"),
        format!("--cacert={CERTS}/etcd/ca.crt"),
        format!("--cert={CERTS}/etcd/healthcheck-client.crt"),
        format!("--key={CERTS}/etcd/healthcheck-client.key"),
        "--command-timeout=5s".to_owned(),
        "--dial-timeout=2s".to_owned(),
    ];
    argv.extend(words.iter().map(|w| (*w).to_owned()));
    argv
}

pub fn list_command() -> Vec<String> {
    etcdctl(&["member", "list", "-w", "json"])
}

/// Asks every member itself. The exit code says whether all are well.
pub fn health_command() -> Vec<String> {
    etcdctl(&["endpoint", "health", "--cluster", "-w", "json"])
}

#[derive(Deserialize)]
struct Endpoint {
    endpoint: String,
    health: bool,
}

/// Addresses of the members that answered for themselves.
pub fn parse_health(text: &str) -> Result<Vec<Ipv4Addr>> {
    let list: Vec<Endpoint> =
        serde_json::from_str(text).with_context(|| format!("understand etcd's health: {text}"))?;
    let address = |e: &Endpoint| e.endpoint.strip_prefix("https://")?.split(':').next()?.parse().ok();
    Ok(list.iter().filter(|e| e.health).filter_map(address).collect())
}

/// Prints how far the log of the etcd in this node is. etcd itself answers no client before it has a majority.
pub fn progress_command() -> Vec<String> {
    [model::node_spec::AGENT_PATH, "agent", "etcd-progress", crate::paths::ETCD_DATA]
        .map(str::to_owned)
        .to_vec()
}

/// Members as one of them knows them, also while there is no majority: the port for other members answers at once.
pub async fn members_known_to(pki: &Pki, ip: Ipv4Addr, dial: api::Dial) -> Result<Vec<Member>> {
    // One without addresses: etcd compares those of a member with where it comes from.
    let client = pki.leaf(leaf::ETCD_HEALTHCHECK_CLIENT)?.clone();
    let identity = Identity { ca: pki.etcd_ca.cert.clone(), client };
    let client = api::client(&identity, ip, PEER_PORT, dial)?;
    let request = http::Request::get("/members").body(Vec::new())?;
    let said = tokio::time::timeout(PEER_ANSWERS, client.request_text(request)).await??;
    parse_known(&said)
}

fn parse_known(text: &str) -> Result<Vec<Member>> {
    #[derive(Deserialize)]
    struct Known {
        id: u64,
        #[serde(flatten)]
        rest: serde_json::Map<String, serde_json::Value>,
    }
    let list: Vec<Known> = serde_json::from_str(text)
        .with_context(|| format!("understand etcd's own list of members: {text}"))?;
    let member = |known: Known| {
        let mut all = known.rest;
        all.insert("ID".to_owned(), known.id.into());
        Ok(serde_json::from_value(all.into())?)
    };
    list.into_iter().map(member).collect()
}

/// The manifest with the flag that makes an etcd of one member from its data, or without.
pub fn forced(manifest: &str, force: bool) -> String {
    const FLAG: &str = "    - --force-new-cluster=true";
    let lines = manifest.lines().filter(|l| *l != FLAG);
    let lines = lines.flat_map(|l| [Some(l), (force && l == "    - etcd").then_some(FLAG)]).flatten();
    lines.flat_map(|l| [l, "\n"]).collect()
}

pub fn add_learner_command(machine: &str, ip: Ipv4Addr) -> Vec<String> {
    etcdctl(&["member", "add", machine, "--learner", &format!("--peer-urls={}", peer_url(ip))])
}

pub fn promote_command(member: &Member) -> Vec<String> {
    etcdctl(&["member", "promote", &format!("{:x}", member.id)])
}

pub fn remove_command(member: &Member) -> Vec<String> {
    etcdctl(&["member", "remove", &format!("{:x}", member.id)])
}

/// To be asked of the leader itself: anybody else refuses.
pub fn move_leader_command(leader: Ipv4Addr, heir: &Member) -> Vec<String> {
    etcdctl_at(leader, &["move-leader", &format!("{:x}", heir.id)])
}

pub fn parse(text: &str) -> Result<Vec<Member>> {
    let list: Members =
        serde_json::from_str(text).with_context(|| format!("understand etcd's list of members: {text}"))?;
    Ok(list.members)
}

/// The member of a machine; one that has never started is known by its address only.
pub fn find<'a>(members: &'a [Member], machine: &str, ip: Ipv4Addr) -> Option<&'a Member> {
    let url = peer_url(ip);
    members.iter().find(|m| m.name == machine || m.peers.contains(&url))
}

/// The value of `--initial-cluster` of the machine that joins.
pub fn initial_cluster(members: &[Member], machine: &str) -> String {
    let name = |m: &Member| if m.name.is_empty() { machine.to_owned() } else { m.name.clone() };
    let all: Vec<String> =
        members.iter().flat_map(|m| m.peers.iter().map(move |p| format!("{}={p}", name(m)))).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"{"header":{"cluster_id":14841639068965178418,"member_id":10276657743932975437,"raft_term":2},
        "members":[{"ID":10276657743932975437,"name":"demo","peerURLs":["https://192.168.49.2:2380"],"clientURLs":["https://192.168.49.2:2379"]},
        {"ID":1,"peerURLs":["https://192.168.49.3:2380"],"isLearner":true}]}"#;

    #[test]
    fn the_flag_comes_and_goes() {
        let plain = "spec:\n  containers:\n  - command:\n    - etcd\n    - --name=demo\n";
        let with = forced(plain, true);
        assert_eq!(with.matches("force-new-cluster").count(), 1);
        assert!(with.contains("    - etcd\n    - --force-new-cluster=true\n    - --name=demo\n"));
        assert_eq!(forced(&with, true), with);
        assert_eq!(forced(&with, false), plain);
    }

    #[test]
    fn health_is_each_members_own() {
        let text = r#"[{"endpoint":"https://192.168.49.2:2379","health":true,"took":"6ms"},
            {"endpoint":"https://192.168.49.3:2379","health":false,"took":"5s","error":"context deadline exceeded"}]"#;
        assert_eq!(parse_health(text).unwrap(), ["192.168.49.2".parse::<Ipv4Addr>().unwrap()]);
        assert!(parse_health("Error: unhealthy cluster").is_err());
    }

    #[test]
    fn members_by_the_word_of_one() {
        let text = r#"[{"id":10276657743932975437,"peerURLs":["https://192.168.49.2:2380"],"name":"demo",
            "clientURLs":["https://192.168.49.2:2379"]},{"id":1,"peerURLs":["https://192.168.49.3:2380"],"isLearner":true}]"#;
        assert_eq!(parse_known(text).unwrap(), parse(LIST).unwrap());
    }

    #[test]
    fn members_are_found_by_name_or_address() {
        let members = parse(LIST).unwrap();
        assert!(!members[0].learner && members[1].learner);
        assert_eq!(find(&members, "demo", Ipv4Addr::LOCALHOST).unwrap().id, 10_276_657_743_932_975_437);
        let new = find(&members, "demo-m02", "192.168.49.3".parse().unwrap()).unwrap();
        assert_eq!(remove_command(new).last().unwrap(), "1");
        let moved = move_leader_command("192.168.49.3".parse().unwrap(), &members[0]);
        assert_eq!(
            (moved[1].as_str(), moved.last().unwrap().as_str()),
            ("--endpoints=https://192.168.49.3:2379", "8e9e05c52164694d")
        );
        assert_eq!(find(&members, "demo-m03", "192.168.49.4".parse().unwrap()), None);
        assert_eq!(
            initial_cluster(&members, "demo-m02"),
            "demo=https://192.168.49.2:2380,demo-m02=https://192.168.49.3:2380"
        );
        assert!(parse("Error: context deadline exceeded").is_err());
    }
}
