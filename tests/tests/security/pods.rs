//! What a pod without privileges cannot do.

use system_tests::Lab;

pub fn an_ordinary_pod(lab: &Lab) {
    let image = lab.busybox();
    lab.apply(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{ name: ordinary }}\nspec:\n  terminationGracePeriodSeconds: 0\n  \
         containers:\n  - name: c\n    image: {image}\n    command: [sleep, '1000000']\n"
    ));
    lab.kubectl(&["wait", "--for=condition=Ready", "pod/ordinary", "--timeout=120s"]).ok();
    let inside = |line: &str| lab.kubectl(&["exec", "ordinary", "--", "sh", "-c", line]);
    inside("test -e /etc/hostname").ok();

    // The agent, the node's files and the host's.
    inside("test ! -e /run/manykube").ok();
    inside("test ! -e /etc/kubernetes && test ! -e /var/lib/kubelet && test ! -e /var/lib/containerd").ok();
    let secret = lab.path("secret");
    std::fs::write(&secret, "of the host").expect("write a file");
    inside(&format!("test ! -e {0} && test ! -e /proc/1/root{0}", secret.display())).ok();
    // The node's processes.
    inside("! grep -qs -e kubelet -e containerd /proc/[0-9]*/comm").ok();
    // Devices, also those that it makes itself.
    inside("test -z \"$(find /dev -type b)\"").ok();
    inside("! (mknod /tmp/disk b 7 0 && dd if=/tmp/disk of=/dev/null count=1)").ok();
    inside("! (mknod /tmp/mem c 1 1 && dd if=/tmp/mem of=/dev/null count=1)").ok();
    // The kernel's settings.
    inside("! (echo 1 > /proc/sys/kernel/panic)").ok();
    inside("! (echo x > /sys/kernel/uevent_helper)").ok();
    inside("! (echo x > /proc/sysrq-trigger)").ok();
    // The API, beyond what it is allowed.
    let may = ["auth", "can-i", "list", "secrets", "-A", "--as=system:serviceaccount:default:default"];
    assert_eq!(lab.kubectl(&may).text(), "no");
    lab.kubectl(&["delete", "pod", "ordinary", "--wait=false"]).ok();
}
