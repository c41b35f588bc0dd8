//! The fuzz target's corpus, run with every test: `fuzz/corpus/parse`. What a file is called says whether
//! it is one (`good-…`) or not (`bad-…`).

use cluster_file::{export, parse, resolve, write};
use model::cluster::{Extras, Network, Wait};
use model::{Cluster, DriverKind, NodeConfig};

fn defaults() -> Cluster {
    Cluster {
        name: "minikube".into(),
        driver: DriverKind::Native,
        kubernetes_version: "v1.37.1".into(),
        cpus: 2,
        memory_mib: 3072,
        disk_mib: 20000,
        network: Network {
            subnet: "192.168.49.0/24".parse().expect("a range"),
            pod_cidr: "10.244.0.0/16".parse().expect("a range"),
            service_cidr: "10.96.0.0/12".parse().expect("a range"),
            dns_domain: "cluster.local".into(),
        },
        api_port: 8443,
        nodes: vec![],
        api_names: vec![],
        api_ips: vec![],
        cert_expiration_hours: 26280,
        addons: Default::default(),
        namespace: "default".into(),
        keep_context: false,
        embed_certs: false,
        wait: Wait { components: vec![] },
        cni: model::Cni::BuiltIn,
        vip_by: model::VipBy::Agent,
        node_defaults: NodeConfig::default(),
        extras: Extras::default(),
    }
}

#[test]
fn the_corpus() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/parse");
    let (mut good, mut bad) = (0, 0);
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        match (parse(&text), name.starts_with("good-")) {
            (Ok(parsed), true) => {
                good += 1;
                let cluster = resolve(&parsed.file, &defaults()).unwrap();
                let written = write(&export(&cluster)).unwrap();
                let again =
                    parse(&written).unwrap_or_else(|e| panic!("{name}: {}\n{written}", e.show("again")));
                assert_eq!(resolve(&again.file, &defaults()).unwrap(), cluster, "{name}");
            }
            (Err(problems), false) => {
                bad += 1;
                assert!(problems.show(&name).lines().count() >= 4, "{name}");
            }
            (Ok(_), false) => panic!("{name} was accepted"),
            (Err(problems), true) => panic!("{}", problems.show(&name)),
        }
    }
    assert!(good >= 5 && bad >= 10, "{good} good and {bad} bad ones");
}

/// The example of the page is one that works.
#[test]
fn the_documented_example_is_good() {
    let page = include_str!("../../../docs/cluster-file.md");
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).filter_map(|b| b.split("```").next()).collect();
    let whole: Vec<&&str> = blocks.iter().filter(|b| b.contains("apiVersion:")).collect();
    assert!(!whole.is_empty());
    for block in whole {
        parse(block).unwrap_or_else(|e| panic!("{}", e.show("docs/cluster-file.md")));
    }
}
