//! Which service has which address. Pure: what a service has already stands in the service itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use model::address::load_balancer_pool;
use model::node_spec::Peers;

/// A service that is to have an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `namespace/name`.
    pub service: String,
    /// When it was made, and an id that no other has: the older one keeps what two claim.
    pub age: (String, String),
    /// What its status says.
    pub has: Vec<Ipv4Addr>,
    /// `spec.loadBalancerIP`.
    pub asked: Option<Ipv4Addr>,
}

/// What may be given out: never an address that a node has.
pub fn addresses(subnet: Ipv4Net, peers: &Peers) -> BTreeSet<Ipv4Addr> {
    load_balancer_pool(subnet, peers.load_balancers).filter(|ip| !peers.nodes.contains(ip)).collect()
}

/// Who has an address keeps it, as long as it may have it; then, the oldest first, the others get theirs.
pub fn give(services: &[Wanted], pool: &BTreeSet<Ipv4Addr>) -> BTreeMap<String, Ipv4Addr> {
    let mut services: Vec<&Wanted> = services.iter().collect();
    services.sort_by(|a, b| a.age.cmp(&b.age));
    let mut free = pool.clone();
    let mut given = BTreeMap::new();
    for service in &services {
        let may = |ip: &&Ipv4Addr| service.asked.is_none_or(|asked| asked == **ip);
        if let Some(ip) = service.has.iter().find(|ip| may(ip) && free.contains(ip)) {
            free.remove(ip);
            given.insert(service.service.clone(), *ip);
        }
    }
    for service in services {
        if given.contains_key(&service.service) {
            continue;
        }
        let ip = match service.asked {
            Some(asked) => free.take(&asked),
            None => free.pop_first(),
        };
        if let Some(ip) = ip {
            given.insert(service.service.clone(), ip);
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(192, 168, 49, last)
    }

    fn service(name: &str, age: u32, has: &[u8], asked: Option<u8>) -> Wanted {
        Wanted {
            service: name.to_owned(),
            age: (format!("{age:04}"), name.to_owned()),
            has: has.iter().map(|l| ip(*l)).collect(),
            asked: asked.map(ip),
        }
    }

    fn pool() -> BTreeSet<Ipv4Addr> {
        let peers = Peers { nodes: vec![ip(2), ip(201)], ..Peers::default() };
        addresses("192.168.49.0/24".parse().expect("a network"), &peers)
    }

    #[test]
    fn nodes_keep_their_addresses() {
        assert!(pool().contains(&ip(200)) && pool().contains(&ip(253)));
        assert!(!pool().contains(&ip(201)) && !pool().contains(&ip(254)));
    }

    #[test]
    fn what_is_given_stays_and_the_older_one_keeps_it() {
        let given = give(
            &[service("new", 9, &[], None), service("b", 2, &[205], None), service("a", 1, &[205], None)],
            &pool(),
        );
        assert_eq!(given["a"], ip(205));
        assert_eq!((given["b"], given["new"]), (ip(200), ip(202)));
    }

    #[test]
    fn an_address_that_was_asked_for_is_that_one_or_none() {
        let asked = |has: &[u8], asked: u8| give(&[service("a", 1, has, Some(asked))], &pool());
        assert_eq!(asked(&[], 240)["a"], ip(240));
        assert_eq!(asked(&[203], 240)["a"], ip(240));
        assert!(asked(&[], 2).is_empty() && asked(&[], 201).is_empty());
        let two = [service("old", 1, &[240], None), service("a", 2, &[], Some(240))];
        assert_eq!(give(&two, &pool()).keys().collect::<Vec<_>>(), ["old"]);
    }

    prop_compose! {
        fn any_service()(name in "[a-z]{1,4}", age in 0u32..20, has in prop::collection::vec(198u8..=255, 0..2), asked in prop::option::of(195u8..=255)) -> Wanted {
            service(&name, age, &has, asked)
        }
    }

    proptest! {
        #[test]
        fn no_address_is_given_twice_and_nothing_changes_afterwards(list in prop::collection::vec(any_service(), 0..80)) {
            let mut list = list;
            list.sort_by(|a, b| a.service.cmp(&b.service));
            list.dedup_by(|a, b| a.service == b.service);
            let given = give(&list, &pool());
            let unique: BTreeSet<_> = given.values().collect();
            prop_assert_eq!(unique.len(), given.len());
            prop_assert!(given.values().all(|ip| pool().contains(ip)));
            let free = pool().len() - given.len();
            let waiting = list.iter().filter(|s| s.asked.is_none() && !given.contains_key(&s.service)).count();
            prop_assert!(free == 0 || waiting == 0);
            for s in &mut list {
                s.has = given.get(&s.service).copied().into_iter().collect();
            }
            prop_assert_eq!(give(&list, &pool()), given);
        }
    }
}
