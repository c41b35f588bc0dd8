//! `--kubelet-binary PATH`, and the same for every program of Kubernetes that can be replaced.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use model::node_config::Binary;

/// Each with its path; an empty one means the program of the node image.
#[derive(Debug, Clone, Default)]
pub struct Binaries(pub Vec<(Binary, String)>);

const FLAGS: [(Binary, &str); 7] = [
    (Binary::Kubelet, "kubelet-binary"),
    (Binary::Kubeadm, "kubeadm-binary"),
    (Binary::Kubectl, "kubectl-binary"),
    (Binary::KubeApiserver, "kube-apiserver-binary"),
    (Binary::KubeControllerManager, "kube-controller-manager-binary"),
    (Binary::KubeScheduler, "kube-scheduler-binary"),
    (Binary::KubeProxy, "kube-proxy-binary"),
];

impl FromArgMatches for Binaries {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Binaries, clap::Error> {
        let given = |(binary, flag)| matches.get_one::<String>(flag).map(|path| (binary, path.clone()));
        Ok(Binaries(FLAGS.into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Binaries::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Binaries {
    fn augment_args(command: Command) -> Command {
        command.args(FLAGS.map(|(binary, flag)| {
            let help = format!("A {binary} of the host instead of the node image's");
            Arg::new(flag).long(flag).action(ArgAction::Set).value_name("PATH").help(help)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Binaries::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_flag() {
        let flags: Vec<String> = FLAGS.iter().map(|(_, flag)| (*flag).to_owned()).collect();
        let want: Vec<String> = Binary::WORDS.iter().map(|word| format!("{word}-binary")).collect();
        assert_eq!(flags, want);
        assert!(FLAGS.iter().all(|(binary, flag)| *flag == format!("{binary}-binary")));
    }
}
