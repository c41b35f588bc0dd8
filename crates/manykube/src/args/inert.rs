//! minikube's options of `start` that change nothing here. They parse, so that scripts run unchanged,
//! and those whose absence a user would notice are named in one warning.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// What it asks for is what happens anyway, or concerns a machine we do not have.
    None,
    /// The user would notice: warn.
    Warn,
    /// Going on would do something else than was asked: refuse.
    Refuse,
}

use Effect::{None as Silent, Refuse, Warn};

/// `true`: a boolean.
const FLAGS: &[(&str, bool, Effect)] = &[
    ("apiserver-name", false, Warn),
    ("auto-pause-interval", false, Silent),
    ("auto-update-drivers", true, Silent),
    ("binary-mirror", false, Silent),
    ("cache-images", true, Silent),
    ("cri-socket", false, Warn),
    ("disable-coredns-log", true, Silent),
    ("disable-driver-mounts", true, Silent),
    ("disable-metrics", true, Silent),
    ("disable-optimizations", true, Silent),
    ("dns-proxy", true, Silent),
    ("dns-servers", false, Warn),
    ("download-only", true, Refuse),
    ("enable-default-cni", true, Silent),
    ("extra-disks", false, Warn),
    ("force-systemd", true, Warn),
    ("gpus", false, Warn),
    ("host-dns-resolver", true, Silent),
    ("host-only-cidr", false, Silent),
    ("host-only-nic-type", false, Silent),
    ("hyperkit-vpnkit-sock", false, Silent),
    ("hyperkit-vsock-ports", false, Silent),
    ("hyperv-external-adapter", false, Silent),
    ("hyperv-use-external-switch", true, Silent),
    ("hyperv-virtual-switch", false, Silent),
    ("image-mirror-country", false, Silent),
    ("image-repository", false, Warn),
    ("insecure-registry", false, Warn),
    ("install-addons", true, Silent),
    ("interactive", true, Silent),
    ("kvm-gpu", true, Silent),
    ("kvm-hidden", true, Silent),
    ("kvm-network", false, Silent),
    ("kvm-numa-count", false, Silent),
    ("kvm-qemu-uri", false, Silent),
    ("mdns", true, Silent),
    ("mount-9p-version", false, Silent),
    ("mount-gid", false, Silent),
    ("mount-ip", false, Silent),
    ("mount-msize", false, Silent),
    ("mount-options", false, Silent),
    ("mount-port", false, Silent),
    ("mount-type", false, Silent),
    ("mount-uid", false, Silent),
    ("nat-nic-type", false, Silent),
    ("native-ssh", true, Silent),
    ("network", false, Warn),
    ("network-plugin", false, Silent),
    ("nfs-share", false, Silent),
    ("nfs-shares-root", false, Silent),
    ("no-kubernetes", true, Refuse),
    ("no-vtx-check", true, Silent),
    ("preload", true, Silent),
    ("preload-source", false, Silent),
    ("qemu-firmware-path", false, Silent),
    ("registry-mirror", false, Warn),
    ("rosetta", true, Silent),
    ("socket-vmnet-client-path", false, Silent),
    ("socket-vmnet-path", false, Silent),
    ("ssh-ip-address", false, Silent),
    ("ssh-key", false, Silent),
    ("ssh-port", false, Silent),
    ("ssh-user", false, Silent),
    ("trace", false, Silent),
    ("uuid", false, Silent),
    ("vm", true, Silent),
    ("vmnet-offloading", true, Silent),
];

/// The inert flags that were given a value which means something.
#[derive(Debug, Clone, Default)]
pub struct Inert(Vec<(&'static str, Effect)>);

impl Inert {
    pub fn named(&self, effect: Effect) -> Vec<String> {
        self.0.iter().filter(|(_, e)| *e == effect).map(|(name, _)| format!("--{name}")).collect()
    }
}

impl FromArgMatches for Inert {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Inert, clap::Error> {
        let given = |&&(name, boolean, _): &&(&'static str, bool, Effect)| {
            if boolean {
                matches.get_flag(name)
            } else {
                matches.get_many::<String>(name).is_some_and(|mut values| values.any(|v| !v.is_empty()))
            }
        };
        Ok(Inert(FLAGS.iter().filter(given).map(|&(name, _, effect)| (name, effect)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Inert::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Inert {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.iter().map(|&(name, boolean, _)| {
            let arg = Arg::new(name).long(name).hide(true);
            let arg = if name == "gpus" { arg.short('g') } else { arg };
            arg.action(if boolean { ArgAction::SetTrue } else { ArgAction::Append })
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Inert::augment_args(command)
    }
}
