//! `ssh://[USER@]HOST[:PORT][/SOCKET]`, as the docker command has it: the system's ssh, with all that it is
//! configured to, runs `docker system dial-stdio` there, which leads to the engine.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Result;
use bollard::Docker as Client;
use model::{Fault, Reason};

use super::ssh_session::Session;
use super::{ssh_refused, transport};
use crate::descriptors;

/// Nobody is there to answer a question, and a host that is not there is to be told in time.
const OPTIONS: [&str; 6] = [
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=10",
    "LogLevel=ERROR",
    "ClearAllForwardings=yes",
    "RequestTTY=no",
];
/// The longest path that a socket may have, less what ssh adds while it makes it.
const LONGEST: usize = 108 - 18;
/// What `%C` becomes, less itself.
const DIGEST: usize = 40 - 2;

/// Who is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    user: Option<String>,
    host: String,
    port: Option<u16>,
    socket: Option<String>,
}

impl Target {
    /// What comes after `ssh://`.
    pub fn parse(text: &str) -> Result<Target, Fault> {
        let wrong = |what: &str| {
            let message = format!("DOCKER_HOST=ssh://{text}: {what}");
            Fault::new(Reason::DriverNotHealthy, message).advice("Write ssh://[USER@]HOST[:PORT]")
        };
        let (place, socket) = text.split_once('/').unwrap_or((text, ""));
        let (user, place) = match place.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, place),
        };
        if user.is_some_and(|user| user.contains(':')) {
            let message = "DOCKER_HOST=ssh://…: a password has no place in an address";
            return Err(Fault::new(Reason::DriverNotHealthy, message).advice("Use a key"));
        }
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| wrong("the port is no number"))?))
            }
            _ => (place, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty()
            || host.starts_with('-')
            || user.is_some_and(|u| u.is_empty() || u.starts_with('-'))
        {
            return Err(wrong("there is no host in it"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
        if !socket.chars().all(plain) {
            return Err(wrong("the socket has a name that a shell would not take as it is"));
        }
        Ok(Target {
            user: user.map(str::to_owned),
            host: host.to_owned(),
            port,
            socket: Some(format!("/{socket}")).filter(|path| path != "/"),
        })
    }

    /// As a user would call it.
    pub fn name(&self) -> String {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let port = self.port.map(|port| format!("-p {port} ")).unwrap_or_default();
        format!("{port}{user}{}", self.host)
    }

    pub fn client(&self) -> Result<Client> {
        let args = self.arguments(rendezvous());
        let dial = move || {
            let mut command = tokio::process::Command::new("ssh");
            command.args(&args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            // The terminal's Ctrl-C is for the command, which is told by way of this.
            command.process_group(0).kill_on_drop(true);
            // What it leaves behind for the next command keeps nothing of the caller's open.
            descriptors::keep_from(command.as_std_mut());
            let session = command.spawn().map_err(ssh_refused::not_run).and_then(Session::new);
            async { session }
        };
        Ok(transport::client(dial)?)
    }

    fn arguments(&self, rendezvous: Option<PathBuf>) -> Vec<OsString> {
        let mut args: Vec<OsString> = vec!["-T".into()];
        let mut option = |text: OsString| args.extend(["-o".into(), text]);
        OPTIONS.iter().for_each(|text| option(text.into()));
        if let Some(path) = rendezvous {
            let mut text = OsString::from("ControlPath=");
            text.push(path);
            option(text);
            option("ControlMaster=auto".into());
            // The next command finds it there.
            option("ControlPersist=20".into());
        }
        if let Some(user) = &self.user {
            args.extend(["-l".into(), user.into()]);
        }
        if let Some(port) = self.port {
            args.extend(["-p".into(), port.to_string().into()]);
        }
        args.extend(["--".into(), self.host.clone().into(), "docker".into()]);
        if let Some(socket) = &self.socket {
            args.push(format!("--host=unix://{socket}").into());
        }
        args.extend(["system".into(), "dial-stdio".into()]);
        args
    }
}

/// Where connections to the same host meet, so that one greeting is enough for all of them: a name of a socket in a
/// directory that is ours alone. `%C` is what ssh makes of host, port and user.
fn rendezvous() -> Option<PathBuf> {
    let own = rustix::process::geteuid().as_raw();
    let above = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = above.join(format!("manykube-{own}"));
    let _ = std::fs::DirBuilder::new().mode(0o700).create(&dir);
    let found = std::fs::symlink_metadata(&dir).ok()?;
    // The same host in another network is another host.
    let network = std::fs::metadata("/proc/self/ns/net").ok()?.ino();
    let path = dir.join(format!("{network}-%C"));
    let fits = path.as_os_str().len() + DIGEST <= LONGEST && !dir.to_string_lossy().contains(['%', ' ', '"']);
    (found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 && fits).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_says() {
        let line = |text: &str| {
            let args = Target::parse(text).map(|t| t.arguments(None)).map_err(|f| f.message)?;
            let own = args.into_iter().skip(1 + 2 * OPTIONS.len());
            Ok::<_, String>(own.map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "))
        };
        let docker = "docker system dial-stdio";
        assert_eq!(line("h").unwrap(), format!("-- h {docker}"));
        assert_eq!(line("me@h:22/").unwrap(), format!("-l me -p 22 -- h {docker}"));
        assert_eq!(line("[fe80::1]:2").unwrap(), format!("-p 2 -- fe80::1 {docker}"));
        assert_eq!(line("h/run/d.sock").unwrap(), "-- h docker --host=unix:///run/d.sock system dial-stdio");
        for wrong in ["", "me@", "h:x", "-oProxyCommand=x", "me:secret@h", "h/a;b"] {
            let message = line(wrong).unwrap_err();
            assert!(!message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn connections_meet_where_only_we_are() {
        let args = Target::parse("h").unwrap().arguments(Some("/run/x/%C".into()));
        assert!(args.contains(&"ControlPath=/run/x/%C".into()), "{args:?}");
    }
}
