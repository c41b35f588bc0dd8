//! Why there is no way to an engine by SSH, in one line, and what to do about it.

use std::io;

use model::{Fault, Reason};

use super::ssh::Target;

/// What a shell ends with that does not find the program.
const NO_PROGRAM: i32 = 127;

/// ssh was not started.
pub fn not_run(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotFound => io::Error::other("there is no ssh on this host"),
        _ => io::Error::other(format!("run ssh: {error}")),
    }
}

/// From what ssh, or docker there, has said: the last line counts, as those before are of how it was tried.
pub fn why(said: &str, code: Option<i32>) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    match (last, code) {
        (_, Some(NO_PROGRAM)) => "there is no docker command".to_owned(),
        (Some(line), _) => line.to_owned(),
        (None, Some(code)) => format!("ssh ended with {code}"),
        (None, None) => "ssh ended without a word".to_owned(),
    }
}

pub fn fault(target: &Target, why: &str) -> Fault {
    let name = target.name();
    let says = |words: &[&str]| words.iter().any(|word| why.contains(word));
    let advice = if says(&["no ssh on this host"]) {
        "Install OpenSSH's client here (Debian: apt-get install openssh-client)".to_owned()
    } else if says(&["Permission denied (", "Too many authentication failures"]) {
        format!(
            "Make 'ssh {name} true' work without a question: with a key that it knows there, and that an agent has (ssh-add)"
        )
    } else if says(&["Host key verification failed", "host key"]) {
        format!("Run 'ssh {name}' once, and look whether the key that it shows is that host's")
    } else if says(&["no docker command"]) {
        format!(
            "Install the docker command on the host of 'ssh {name}' (18.09 or later): it leads to the engine there"
        )
    } else if says(&["permission denied"]) {
        format!("Let that user use the engine: on the host of 'ssh {name}', sudo usermod -aG docker $USER")
    } else if says(&["docker daemon running", "dial unix"]) {
        format!("Start the engine on the host of 'ssh {name}'")
    } else {
        format!("See whether 'ssh {name} docker version' works, and DOCKER_HOST")
    };
    let message = format!("The Docker engine behind 'ssh {name}' cannot be reached: {why}");
    Fault::new(Reason::DriverNotHealthy, message).advice(advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_depends_on_who_refused() {
        let target = Target::parse("me@h:2222").unwrap();
        let advice = |said: &str, code: i32| fault(&target, &why(said, Some(code))).advice.unwrap();
        let key = advice("x\nme@h: Permission denied (publickey).\r\n", 255);
        assert!(key.contains("'ssh -p 2222 me@h true'") && key.contains("ssh-add"), "{key}");
        assert!(advice("Host key verification failed.", 255).contains("once"));
        assert!(advice("sh: 1: docker: not found", 127).contains("Install the docker command"));
        let group = "failed to open the raw stream connection: dial unix /x.sock: connect: permission denied";
        assert!(advice(group, 1).contains("usermod"));
        let down =
            "failed to open the raw stream connection: dial unix /x.sock: connect: no such file or directory";
        assert!(advice(down, 1).contains("Start the engine"));
        assert!(advice("ssh: connect to host h port 22: Connection refused", 255).contains("docker version"));
    }
}
