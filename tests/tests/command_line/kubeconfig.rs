//! Others write the kubeconfig too.

use std::sync::atomic::{AtomicBool, Ordering};

use super::minikube::Minikube;

const CONTEXTS: usize = 6;
/// kubectl does not wait for the file's lock: it fails.
const TRIES: usize = 50;

fn insist(mk: &Minikube<'_>, args: &[&str]) {
    for _ in 0..TRIES {
        let ran = mk.kubectl(args);
        if ran.code == 0 {
            return;
        }
        assert!(ran.stderr.contains("file exists"), "{}", ran.stderr);
    }
    panic!("kubectl never got the lock of its kubeconfig");
}

/// kubectl writes contexts and spoils our cluster's address again and again; we mend that as often as it
/// takes. Nothing that kubectl wrote is lost.
pub fn several_write_it(mk: &Minikube<'_>) {
    let done = AtomicBool::new(false);
    let mended = std::thread::scope(|threads| {
        let mending = threads.spawn(|| {
            let mut mended = 0;
            while !done.load(Ordering::Relaxed) {
                let ran = mk.line("update-context").ok();
                mended += usize::from(ran.stdout.contains("context has been updated"));
            }
            mended
        });
        for number in 0..CONTEXTS {
            insist(mk, &["config", "set", &format!("contexts.other-{number}.cluster"), "elsewhere"]);
            insist(
                mk,
                &["config", "set", "clusters.minikube.server", &format!("https://192.0.2.1:{number}")],
            );
        }
        done.store(true, Ordering::Relaxed);
        mending.join().expect("the thread that mends")
    });
    println!("{CONTEXTS} contexts were written by kubectl while the kubeconfig was mended {mended} times");
    mk.line("update-context").ok();
    let config = mk.kubectl(&["config", "view", "-o", "json"]).ok().json();
    let contexts = config["contexts"].as_array().expect("contexts");
    for number in 0..CONTEXTS {
        let name = format!("other-{number}");
        assert!(contexts.iter().any(|c| c["name"] == name.as_str()), "{name} is lost");
        mk.kubectl(&["config", "delete-context", &name]).ok();
    }
    assert_eq!(config["clusters"][0]["cluster"]["server"], format!("https://{}:8443", super::VIP));
    assert_eq!(config["current-context"], "minikube");
}
