use std::process::Output;
use std::time::Duration;

/// A command that has ended.
#[derive(Debug)]
pub struct Ran {
    pub command: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub elapsed: Duration,
}

impl Ran {
    pub fn new(command: String, output: Output, elapsed: Duration) -> Ran {
        Ran {
            command,
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed,
        }
    }

    /// Panics with all that the command said unless it ended well.
    #[track_caller]
    pub fn ok(self) -> Ran {
        self.exit(0)
    }

    #[track_caller]
    pub fn exit(self, code: i32) -> Ran {
        assert_eq!(
            self.code, code,
            "`{}` ended with {}, not {code}\n--- stdout\n{}\n--- stderr\n{}",
            self.command, self.code, self.stdout, self.stderr
        );
        self
    }

    pub fn text(&self) -> &str {
        self.stdout.trim_end()
    }

    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(e) => panic!("`{}` printed no JSON ({e}):\n{}", self.command, self.stdout),
        }
    }
}
