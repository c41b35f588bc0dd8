//! The user's terminal in raw mode, for as long as a terminal in a node is joined to it.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

pub struct Raw {
    before: Option<Termios>,
}

impl Raw {
    /// Does nothing where standard input is no terminal.
    pub fn enter() -> Raw {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut raw = before.clone();
            raw.make_raw();
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &raw);
        }
        Raw { before }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
