use super::*;

fn rules(text: &str) -> Vec<String> {
    text.lines().map(|line| format!("-A FORWARD {}", line.trim())).collect()
}

fn subnet() -> Ipv4Net {
    "192.168.49.0/24".parse().unwrap()
}

/// What iptables would have after these changes.
fn after(mut rules: Vec<String>, changes: &[String]) -> Vec<String> {
    for change in changes {
        let (what, rest) = change.split_once(" FORWARD ").unwrap();
        match what {
            "-D" => rules.retain(|rule| *rule != format!("-A FORWARD {rest}")),
            "-A" => rules.push(format!("-A FORWARD {rest}")),
            "-I" => {
                let (place, rest) = rest.split_once(' ').unwrap();
                rules.insert(place.parse::<usize>().unwrap() - 1, format!("-A FORWARD {rest}"));
            }
            other => panic!("{other}"),
        }
    }
    rules
}

#[test]
fn ours_come_last_but_before_the_last_word() {
    let docker = rules("-j DOCKER-USER\n-i docker0 -o docker0 -j ACCEPT");
    let opened = after(docker.clone(), &repair(&docker, "mk-a", subnet()));
    assert_eq!(opened[..2], docker[..]);
    assert!(is_complete(&opened, "mk-a", subnet()));
    assert_eq!(after(opened.clone(), &repair(&opened, "mk-a", subnet())), opened, "again");
    assert_eq!(after(opened.clone(), &removal(&opened, "mk-a")), docker);

    let refusing =
        rules("-m state --state ESTABLISHED -j ACCEPT\n-j REJECT --reject-with icmp-host-prohibited");
    let opened = after(refusing.clone(), &repair(&refusing, "mk-a", subnet()));
    assert!(is_complete(&opened, "mk-a", subnet()));
    assert_eq!(opened.last(), refusing.last());
    assert_eq!(opened.first(), refusing.first());
}

#[test]
fn what_is_lacking_or_not_heard_is_found() {
    let none = Vec::new();
    let all = after(none.clone(), &repair(&none, "mk-a", subnet()));
    assert!(!is_complete(&none, "mk-a", subnet()));
    assert!(!is_complete(&all[1..], "mk-a", subnet()));
    assert!(!is_complete(&all, "mk-b", subnet()), "another bridge's");
    assert!(!is_complete(&all, "mk-a", "192.168.58.0/24".parse().unwrap()), "another subnet's");
    let late = [rules("-j DROP"), all].concat();
    assert!(!is_complete(&late, "mk-a", subnet()));
    assert!(is_complete(&after(late.clone(), &repair(&late, "mk-a", subnet())), "mk-a", subnet()));
}

#[test]
fn chains_of_firewalls() {
    let said = r#"{"nftables": [{"metainfo": {"version": "1.0.6"}},
        {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "hook": "forward", "policy": "drop"}},
        {"chain": {"family": "ip", "table": "filter", "name": "DOCKER-USER"}},
        {"chain": {"family": "inet", "table": "firewalld", "name": "filter_FORWARD", "hook": "forward", "policy": "accept"}},
        {"chain": {"family": "ip", "table": "manykube-mk-a", "name": "forward", "hook": "forward", "policy": "accept"}}]}"#;
    let chains = parse(said).unwrap();
    assert_eq!(Make::in_use(&chains).first(), Some(&Make::Nft));
    let others: Vec<&str> =
        chains.iter().filter(|c| c.is_another_firewall()).map(|c| c.table.as_str()).collect();
    assert_eq!(others, ["firewalld"]);
}
