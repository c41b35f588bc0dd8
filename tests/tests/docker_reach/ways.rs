//! Ways to an engine that is elsewhere, and what is said where there is none.

use std::process::Command;
use std::time::Instant;

use system_tests::{Lab, Ran, certificates};

use super::{NOT_HEALTHY, engine};

/// As the docker command calls it.
const CONTEXT: &str = "by-tls";

/// Each is one line that says why, and what to do.
pub fn no_way_by_ssh(lab: &Lab) {
    for (host, why, what) in [
        ("ssh://stranger", "Permission denied", "ssh-add"),
        ("ssh://unknown", "Host key verification failed", "'ssh unknown' once"),
        ("ssh://bare:2222", "there is no docker command", "Install the docker command"),
        ("ssh://far/nowhere.sock", "dial unix /nowhere.sock", "Start the engine"),
        ("ssh://root:secret@far", "a password has no place", "Use a key"),
    ] {
        refused(lab, &[("DOCKER_HOST", host)], why, what);
    }
    refused(lab, &[("PATH", "/nowhere")], "there is no ssh on this host", "openssh-client");
}

fn refused(lab: &Lab, variables: &[(&str, &str)], why: &str, what: &str) {
    refused_for(lab, "nothing", variables, why, what);
}

fn refused_for(lab: &Lab, profile: &str, variables: &[(&str, &str)], why: &str, what: &str) {
    // The engine that is named is meant, also where another driver would do.
    let mut command = lab.command(&["start", "-p", profile]);
    let began = Instant::now();
    let output = command.env_remove("MANYKUBE_DRIVER").envs(variables.iter().copied()).output();
    let ran = Ran::new(format!("start {variables:?}"), output.expect("run manykube"), began.elapsed());
    let ran = ran.exit(NOT_HEALTHY);
    let told = ran.stderr.lines().filter(|line| line.contains(why)).count();
    assert!(told == 1 && ran.stderr.contains(what) && !ran.stderr.contains("secret"), "{}", ran.stderr);
}

/// Another cluster of the same engine, by TCP with TLS and certificates: variables say so, then a context of docker's.
pub fn by_tls(lab: &Lab) {
    let by = engine(lab).by_tls();
    let run = |args: &[&str]| {
        let began = Instant::now();
        let output = by_context(lab.command(args)).output().expect("run manykube");
        Ran::new(format!("by TLS: {}", args.join(" ")), output, began.elapsed())
    };
    certificates::make(&lab.path("others"), "10.99.0.2");
    let others = lab.path("others").display().to_string();
    let by: Vec<(&str, &str)> = by.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let with = |certs| [&by[..2], &[("DOCKER_CERT_PATH", certs)]].concat();
    refused_for(lab, "tls", &with(&others), "invalid peer certificate", "ca.pem does not vouch");
    refused_for(lab, "tls", &with("/nowhere"), "/nowhere/ca.pem", "DOCKER_CERT_PATH names");

    let certs = by[2].1;
    let endpoint = format!("host={},ca={certs}/ca.pem,cert={certs}/cert.pem,key={certs}/key.pem", by[0].1);
    let mut docker = Command::new("docker");
    docker
        .args(["context", "create", CONTEXT, "--docker", &endpoint])
        .env("DOCKER_CONFIG", lab.docker_config());
    assert!(docker.output().expect("run docker").status.success(), "{docker:?}");
    refused(lab, &[("DOCKER_HOST", ""), ("DOCKER_CONTEXT", "gone")], "context \"gone\"", "docker context ls");
    let started = run(&["start", "-p", "tls", "--driver=docker"]).ok();
    println!("start of one node by TLS: {:.1} s", started.elapsed.as_secs_f32());
    let nodes = lab.kubectl(&["--context=tls", "get", "nodes", "--no-headers"]).ok();
    assert!(nodes.stdout.contains(" Ready "), "{}", nodes.stdout);
    println!("status by TLS: {:.2} s", run(&["status", "-p", "tls"]).ok().elapsed.as_secs_f32());
    run(&["delete", "-p", "tls"]).ok();
}

fn by_context(mut command: Command) -> Command {
    command.env_remove("DOCKER_HOST").env("DOCKER_CONTEXT", CONTEXT);
    command
}
