//! How a line begins: an emoji on a colour terminal, an ASCII mark elsewhere.

use std::io::IsTerminal;

use super::steps::{Step, start};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Happy,
    Sparkle,
    Starting,
    Running,
    Certs,
    Kubernetes,
    Network,
    Verifying,
    Addons,
    Ready,
    Pausing,
    Unpausing,
    Stopping,
    Stopped,
    Deleting,
    Deleted,
    Waiting,
    Notice,
    Normal,
    Option,
    Indent,
    Warning,
    Fatal,
    Tip,
}

impl Style {
    pub fn of_step(step: Step) -> Style {
        match step {
            start::CREATING_CONTAINER | start::CREATING_VM | start::STARTING_NODE => Style::Starting,
            start::PULLING_BASE_IMAGE | start::DOWNLOADING_ARTIFACTS => Style::Waiting,
            start::PREPARING_KUBERNETES | start::BOOTING_CONTROL_PLANE => Style::Kubernetes,
            start::GENERATING_CERTS | start::CONFIGURING_RBAC => Style::Certs,
            start::CONFIGURING_CNI => Style::Network,
            start::VERIFYING_KUBERNETES => Style::Verifying,
            start::ENABLING_ADDONS => Style::Addons,
            _ => Style::Normal,
        }
    }

    pub fn emoji(self) -> &'static str {
        match self {
            Style::Happy => "😄  ",
            Style::Sparkle => "✨  ",
            Style::Starting => "👍  ",
            Style::Running => "🏃  ",
            Style::Certs => "🔑  ",
            Style::Kubernetes => "☸️  ",
            Style::Network => "🔗  ",
            Style::Verifying => "🔎  ",
            Style::Addons => "🌟  ",
            Style::Ready => "🏄  ",
            Style::Pausing => "⏸️  ",
            Style::Unpausing => "⏯️  ",
            Style::Stopping => "✋  ",
            Style::Stopped => "🛑  ",
            Style::Deleting => "🔥  ",
            Style::Deleted => "💀  ",
            Style::Waiting => "⌛  ",
            Style::Notice => "📌  ",
            Style::Normal => "",
            Style::Option => "    ▪ ",
            Style::Indent => "    ",
            Style::Warning => "❗  ",
            Style::Fatal => "❌  ",
            Style::Tip => "💡  ",
        }
    }

    pub fn ascii(self) -> &'static str {
        match self {
            Style::Option => "  - ",
            Style::Indent => "  ",
            Style::Warning => "! ",
            Style::Fatal => "X ",
            _ => "* ",
        }
    }
}

/// Whether to use emoji and live lines: `MINIKUBE_IN_STYLE` decides, else whether stdout is a terminal.
pub fn in_style() -> bool {
    let forced = ["MANYKUBE_IN_STYLE", "MINIKUBE_IN_STYLE"].iter().find_map(|k| std::env::var(k).ok());
    match forced.as_deref() {
        Some("true" | "1" | "yes") => true,
        Some(_) => false,
        None => std::io::stdout().is_terminal() && std::env::var("TERM").is_ok_and(|t| t != "dumb"),
    }
}
