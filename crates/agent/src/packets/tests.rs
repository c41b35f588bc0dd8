use std::process::Command;

use model::injected::{LOSS_OF, Slowness};

use super::*;

fn cut_from(hosts: &[u8]) -> PacketFaults {
    let cut_from = hosts.iter().map(|host| [192, 168, 49, *host].into()).collect();
    PacketFaults { cut_from, ..PacketFaults::default() }
}

fn lossy(loss: u16) -> PacketFaults {
    PacketFaults { slowness: Slowness { loss, ..Slowness::default() }, ..PacketFaults::default() }
}

fn script(faults: &PacketFaults, hooks: Hooks) -> String {
    rules::script("", "eth0", faults, hooks)
}

#[test]
fn without_losses_there_is_no_table() {
    let tables = "table ip manykube_vip\ntable netdev manykube_faults\ntable arp manykube_faults\n";
    let late =
        PacketFaults { slowness: Slowness { delay_us: 9, ..Slowness::default() }, ..PacketFaults::default() };
    for faults in [PacketFaults::default(), late] {
        assert_eq!(script(&faults, Hooks::Both), "");
        assert_eq!(
            rules::script(tables, "eth0", &faults, Hooks::Both),
            "delete table netdev manykube_faults\ndelete table arp manykube_faults\n"
        );
    }
}

#[test]
fn a_node_that_is_cut_off_hears_and_says_nothing() {
    let cut = PacketFaults { cut: true, ..PacketFaults::default() };
    assert_eq!(
        script(&cut, Hooks::Both),
        "table netdev manykube_faults {\n\
         chain ingress {\ntype filter hook ingress device \"eth0\" priority -500; policy drop;\n}\n\
         chain egress {\ntype filter hook egress device \"eth0\" priority -500; policy drop;\n}\n}\n"
    );
    assert_eq!(script(&lossy(LOSS_OF), Hooks::Both), script(&cut, Hooks::Both));
    let older = script(&cut, Hooks::Ingress);
    assert_eq!(
        (older.matches("policy drop").count(), older.matches("oifname \"eth0\" drop").count()),
        (1, 2)
    );
    assert!(!older.contains("egress"), "{older}");
}

#[test]
fn others_are_known_by_their_hardware_addresses() {
    let some = PacketFaults { cut_from: cut_from(&[3, 4]).cut_from, ..lossy(250) };
    let both = script(&some, Hooks::Both);
    for way in ["saddr", "daddr"] {
        let rule = format!("ether {way} {{ 02:6d:c0:a8:31:03, 02:6d:c0:a8:31:04 }} drop\n");
        assert!(both.contains(&rule), "{both}");
    }
    assert_eq!(both.matches("numgen random mod 10000 < 250 drop").count(), 2);
    assert_eq!(both.matches("policy accept").count(), 2);
    assert_eq!(script(&some, Hooks::Ingress).matches("numgen random mod 10000 < 250 drop").count(), 3);
    // The other node's rules do the rest.
    assert!(!script(&cut_from(&[3]), Hooks::Ingress).contains("table inet"));
}

#[test]
fn delays_in_tcs_words() {
    let line = delay::netem(Slowness { delay_us: 50_000, jitter_us: 500, loss: 0 }).join(" ");
    assert_eq!(line, "qdisc replace dev eth0 root netem limit 10000 delay 100000us 1000us");
}

/// The kernel's word, in a network namespace of its own; not at all without the right to make one.
#[test]
fn the_kernel_takes_and_forgets_them() {
    if !nix::unistd::geteuid().is_root() || !Path::new(NFT).exists() {
        return;
    }
    let body = || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        let made = Command::new("ip")
            .args(["link", "add", "eth0", "type", "veth", "peer", "name", "other"])
            .status();
        assert!(made.unwrap().success());
        let list = || output(NFT, &["list", "tables"], "").unwrap();
        for faults in [
            PacketFaults { cut: true, ..PacketFaults::default() },
            cut_from(&[3, 4]),
            lossy(250),
            lossy(LOSS_OF),
        ] {
            assert_eq!(apply(&faults).unwrap(), Done::All);
            assert!(list().contains("netdev manykube_faults"));
            let older = rules::script(&list(), LINK, &faults, Hooks::Ingress);
            output(NFT, &["-f", "-"], &older).unwrap();
        }
        assert_eq!(apply(&PacketFaults::default()).unwrap(), Done::All);
        assert_eq!(list(), "");
    };
    std::thread::scope(|scope| scope.spawn(body).join()).unwrap();
}
