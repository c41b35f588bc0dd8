//! What `start` says besides the progress of its plan.

use model::{Cluster, Cni, DriverKind};

use super::{french, proxy};
use crate::ctx::Ctx;
use crate::host;
use crate::report::steps::start;
use crate::report::{Event, Style};
use crate::version::VERSION;

pub fn greeting(ctx: &Ctx, driver: DriverKind, existing: bool, asked: bool) {
    let named = ctx.profile != ctx.default_profile;
    let profile = if named { format!("[{}] ", ctx.profile) } else { String::new() };
    let hello = format!("{profile}{} {VERSION} on {} ({})", ctx.tool, host::os(), host::arch());
    ctx.emit(Event::step(start::INITIAL_SETUP, Style::Happy, hello));
    for (name, value) in settings(std::env::vars()) {
        ctx.emit(Event::info(Style::Option, format!("{name}={value}")));
    }
    let why = match (existing, asked) {
        _ if french::is_asked(&host::env) => french::driver(&driver.to_string(), existing, asked),
        (true, _) => format!("Using the {driver} driver based on existing profile"),
        (false, true) => format!("Using the {driver} driver based on user configuration"),
        (false, false) => format!("Automatically selected the {driver} driver"),
    };
    ctx.emit(Event::step(start::SELECTING_DRIVER, Style::Sparkle, why));
}

pub fn proxy(ctx: &Ctx, cluster: &Cluster) {
    let options = proxy::options(&host::env);
    if options.is_empty() {
        return;
    }
    ctx.emit(Event::info(Style::Network, "Found network options:"));
    for (name, value) in options {
        ctx.emit(Event::info(Style::Option, format!("{name}={value}")));
    }
    if let Some(warning) = cluster.endpoint().and_then(|ip| proxy::warning(&host::env, ip)) {
        ctx.warn(warning);
    }
}

pub fn starting(ctx: &Ctx, cluster: &Cluster) {
    let machine = cluster.primary().map(|n| cluster.machine(n)).unwrap_or_default();
    let message =
        format!("Starting \"{machine}\" primary control-plane node in \"{}\" cluster", cluster.name);
    ctx.emit(Event::step(start::STARTING_NODE, Style::Starting, message));
}

/// Variables that change what we do, as the user set them.
fn settings(vars: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut list: Vec<_> = vars.collect();
    // For somebody elsewhere the kubeconfig is one of our own.
    let elsewhere = list.iter().any(|(name, _)| name == crate::state::handout::VARIABLE);
    list.retain(|(name, _)| {
        let ours = name.starts_with("MINIKUBE_") || name.starts_with("MANYKUBE_");
        (ours && !crate::inside::VARIABLES.contains(&name.as_str())) || (name == "KUBECONFIG" && !elsewhere)
    });
    list.sort();
    list
}

pub fn already_running(ctx: &Ctx, cluster: &Cluster) {
    let message = format!("The running \"{}\" cluster is as asked for", cluster.name);
    ctx.emit(Event::info(Style::Running, message));
}

pub fn dry_run(ctx: &Ctx) {
    ctx.emit(Event::info(Style::Ready, "dry-run validation complete!"));
}

/// Who asked for no pod network gets what was asked for; said, because nodes look broken without one.
pub fn pod_network(ctx: &Ctx, cluster: &Cluster) {
    if cluster.cni == Cni::None {
        let message = "No pod network was installed (--cni=none), so Ready nodes and DNS were not waited for";
        ctx.emit(Event::info(Style::Option, message));
    }
}

pub fn done(ctx: &Ctx, cluster: &Cluster) {
    let (name, namespace) = (&cluster.name, &cluster.namespace);
    let message = if french::is_asked(&host::env) {
        french::done(name, namespace, cluster.keep_context)
    } else if cluster.keep_context {
        format!("Done! To connect to this cluster, use: kubectl --context={name}")
    } else {
        format!(
            "Done! kubectl is now configured to use \"{name}\" cluster and \"{namespace}\" namespace by default"
        )
    };
    ctx.emit(Event::step(start::DONE, Style::Ready, message));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_variables_are_echoed() {
        let vars = [("PATH", "/bin"), ("MINIKUBE_HOME", "/h"), ("KUBECONFIG", "/k"), ("KUBE", "x")];
        let told = |vars: &[(&str, &str)]| {
            let got = settings(vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
            got.into_iter().map(|(k, _)| k).collect::<Vec<_>>()
        };
        assert_eq!(told(&vars), ["KUBECONFIG", "MINIKUBE_HOME"]);
        let elsewhere = [&vars[..], &[(crate::state::handout::VARIABLE, "/h")]].concat();
        assert_eq!(told(&elsewhere), ["MINIKUBE_HOME"]);
    }
}
