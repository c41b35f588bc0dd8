//! What root in a node, or a pod with a hostPath volume, leaves in the node to trap the host's commands.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use system_tests::{Lab, Layers, eventually};

/// A pod that may do nothing special, but sees the node's files, as an ordinary hostPath volume lets it.
fn pod(lab: &Lab) {
    let image = lab.busybox();
    lab.apply(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: attacker }}\nspec:\n  nodeName: minikube-m02\n  \
         terminationGracePeriodSeconds: 0\n  containers:\n  - name: c\n    image: {image}\n    \
         command: [sleep, '1000000']\n    volumeMounts: [{{ name: node, mountPath: /node }}]\n  \
         volumes: [{{ name: node, hostPath: {{ path: / }} }}]\n"
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/attacker", "--timeout=120s"]).ok();
}

/// What images are is looked at again when there is another cluster.
pub fn leave_the_host_as_it_is(lab: &Lab) -> Layers<'_> {
    pod(lab);
    let inside = |line: &str| lab.kubectl(&["exec", "attacker", "--", "sh", "-c", line]).ok();
    let landed = lab.path("landed");
    std::fs::create_dir(&landed).expect("make a directory");

    the_kernel_starts_no_program_of_a_node(lab, &inside);
    nothing_of_ours_is_overwritten(lab);
    programs_of_a_node_are_not_run_here(lab, &inside, &landed);
    links_of_a_node_lead_nowhere_here(lab, &inside, &landed);
    let left: Vec<_> = std::fs::read_dir(&landed).expect("a directory").flatten().collect();
    assert!(left.is_empty(), "the host has {left:?}");
    let layers = images_are_a_nodes_own(lab);
    lab.kubectl(&["delete", "pod", "attacker", "--wait=false", "--ignore-not-found"]).ok();
    layers
}

/// S6: files of container images are those of all nodes.
fn images_are_a_nodes_own(lab: &Lab) -> Layers<'_> {
    let layers = Layers::take(lab, "minikube");
    eventually("the pod runs again on the node that was stopped", Duration::from_secs(60), || {
        let ran = lab.kubectl(&["exec", "attacker", "--", "true"]);
        if ran.code == 0 { Ok(()) } else { Err(ran.stderr) }
    });
    layers.attack_from("attacker");
    layers.attack("m02");
    layers.assert_unchanged();
    layers
}

/// S7: what the kernel runs as the host's root, and what reaches the host past its paths.
fn the_kernel_starts_no_program_of_a_node<T>(lab: &Lab, inside: &dyn Fn(&str) -> T) {
    let files = ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe"];
    let read = || files.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let before = read();
    for path in files {
        inside(&format!("! (echo '|/trap' > /node{path}) 2>/dev/null"));
        lab.manykube(&["ssh", "-n", "m02", "--", &format!("! (echo '|/trap' > {path}) 2>/dev/null")]).ok();
    }
    assert_eq!(read(), before, "a node changed what the host's kernel runs");
    let status = lab.manykube(&["ssh", "-n", "m02", "--", "cat /proc/self/status"]).ok().stdout;
    let line = status.lines().find_map(|line| line.strip_prefix("CapBnd:")).expect("a bounding set");
    let bounding = u64::from_str_radix(line.trim(), 16).expect("a number");
    // DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_BOOT
    for capability in [2, 16, 17, 22] {
        assert_eq!(bounding & (1 << capability), 0, "root in a node has capability {capability}");
    }
}

/// S2: `image build` needs a client, and the node has one of that name.
fn programs_of_a_node_are_not_run_here<T>(lab: &Lab, inside: &dyn Fn(&str) -> T, landed: &Path) {
    let trap = format!("#!/bin/sh\nid > {}/ran\n", landed.display());
    inside(&format!(
        "for p in buildctl ctr; do f=/node/usr/local/bin/$p; [ ! -e $f ] || mv $f $f.real; printf '%s' '{trap}' > $f; chmod 755 $f; done"
    ));
    let context = lab.path("context");
    std::fs::create_dir(&context).expect("make a directory");
    std::fs::write(context.join("Dockerfile"), "FROM scratch\nCOPY Dockerfile /\n").expect("write");
    let context = context.display().to_string();
    // ctr is the node's own affair: what asks for it there may fail.
    let _ = lab.manykube(&["image", "build", "-n", "m02", "-t", "trap:1", &context]);
    let _ = lab.manykube(&["image", "ls"]);
    lab.manykube(&["status"]).ok();
    inside(
        "for p in buildctl ctr; do f=/node/usr/local/bin/$p; rm $f; [ ! -e $f.real ] || mv $f.real $f; done",
    );
    lab.manykube(&["image", "build", "-n", "m02", "-t", "trap:2", &context]).ok();
    lab.manykube(&["image", "rm", "trap:2"]).ok();
}

/// S4: files that commands write, read or follow are links into the host.
fn links_of_a_node_lead_nowhere_here<T>(lab: &Lab, inside: &dyn Fn(&str) -> T, landed: &Path) {
    let secret = lab.path("secret-of-the-host");
    std::fs::write(&secret, "secret of the host").expect("write");
    let (to, secret) = (landed.display(), secret.display());
    // Written while the node runs: the list of nodes, files of the home, a copy.
    inside(&format!("ln -sf {to}/peers /node/etc/manykube/peers.json"));
    inside(&format!("ln -sfn {to} /node/etc/trap; ln -sf {secret} /node/etc/leak"));
    std::fs::create_dir_all(lab.home().join("files/etc/trap")).expect("make a directory");
    std::fs::write(lab.home().join("files/etc/trap/of-the-home"), "x").expect("write");
    let _ = lab.manykube(&["start"]);
    let _ = lab.manykube(&[
        "cp",
        &lab.home().join("files/etc/trap/of-the-home").display().to_string(),
        "m02:/etc/trap/copied",
    ]);
    std::fs::remove_dir_all(lab.home().join("files/etc/trap")).expect("remove");
    let copy = lab.path("copy");
    let _ = lab.manykube(&["cp", "m02:/etc/leak", &copy.display().to_string()]);
    assert!(!std::fs::read_to_string(&copy).unwrap_or_default().contains("secret"), "a link led to the host");
    // Written while the node is off.
    inside(&format!("rm /node/etc/trap /node/etc/leak; ln -sf {to}/booted /node/etc/trap"));
    std::fs::write(lab.home().join("files/etc/trap"), "x").expect("write");
    lab.manykube(&["node", "stop", "m02"]).ok();
    lab.manykube(&["node", "start", "m02"]).ok();
    lab.manykube(&["ssh", "-n", "m02", "--", "test ! -L /etc/trap && test -s /etc/trap"]).ok();
    std::fs::remove_file(lab.home().join("files/etc/trap")).expect("remove");
    lab.manykube(&["node", "add"]).ok();
    lab.manykube(&["node", "delete", "m03"]).ok();
}

/// S3: a program of the host that is seen in a node is overwritten there (CVE-2019-5736).
fn nothing_of_ours_is_overwritten(lab: &Lab) {
    let programs: Vec<PathBuf> = std::fs::read_dir(lab.home().join("bin"))
        .expect("the agents")
        .flatten()
        .map(|entry| entry.path())
        .chain([Lab::program()])
        .collect();
    let read = || programs.iter().map(|p| std::fs::read(p).expect("read")).collect::<Vec<_>>();
    let before = read();
    // Whatever appears while commands run, and the agent's own file, made writable.
    let attack = "mount -o remount,bind,rw /usr/local/bin/manykube 2>/dev/null; end=$(($(date +%s) + 6)); \
                  while [ $(date +%s) -lt $end ]; do for p in /proc/[0-9]*/exe /usr/local/bin/manykube; do \
                  (printf x >> $p) 2>/dev/null; done; done; true";
    let mut attacker =
        lab.command(&["ssh", "-n", "m02", "--", attack]).stdin(Stdio::null()).spawn().expect("attack");
    while attacker.try_wait().expect("look").is_none() {
        lab.manykube(&["ssh", "-n", "m02", "--", "true"]).ok();
        lab.manykube(&["status"]).ok();
        lab.manykube(&["logs", "-n", "1"]).ok();
    }
    assert!(before == read(), "a node changed one of {programs:?}");
}
