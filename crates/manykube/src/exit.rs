//! How a command ends.

use model::{Fault, Reason};

use crate::ctx::Ctx;
use crate::report::{Event, Style};

/// The fault in an error: its own if it has one, else the command's default reason with the whole chain.
pub fn fault(error: &anyhow::Error, default: Reason) -> Fault {
    match error.chain().find_map(|e| e.downcast_ref::<Fault>()) {
        Some(fault) => fault.clone(),
        None => Fault::new(default, format!("{error:#}")),
    }
}

/// Tells the user why the command ends; the exit code.
pub fn report(ctx: &Ctx, fault: Fault) -> u8 {
    let code = fault.reason.exit_code();
    match fault.reason {
        // That there is no such cluster is an answer rather than a failure.
        Reason::ProfileNotFound => {
            let list = format!("{} Run \"{} profile list\" to view all profiles.", fault.message, ctx.tool);
            ctx.emit(Event::info(Style::Notice, list));
            start_hint(ctx);
        }
        Reason::HostNotRunning | Reason::ApiserverNotRunning => {
            ctx.emit(Event::info(Style::Notice, fault.message));
            match fault.advice {
                Some(advice) => ctx.emit(Event::info(Style::Indent, advice)),
                None => start_hint(ctx),
            }
        }
        reason => ctx.emit(Event::Fatal {
            id: reason.id().to_owned(),
            code,
            message: fault.message,
            advice: fault.advice,
        }),
    }
    code
}

fn start_hint(ctx: &Ctx) {
    let hint = format!("To start a cluster, run: \"{}\"", ctx.hint("start"));
    ctx.emit(Event::info(Style::Indent, hint));
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn a_fault_keeps_its_reason_below_context() {
        let deep: anyhow::Result<()> = Err(Fault::new(Reason::ConfigLoad, "bad").into());
        let error = deep.context("while starting").unwrap_err();
        assert_eq!(fault(&error, Reason::GuestStart).reason, Reason::ConfigLoad);
        let plain = anyhow::anyhow!("inner").context("outer");
        let got = fault(&plain, Reason::GuestStart);
        assert_eq!((got.reason, got.message.as_str()), (Reason::GuestStart, "outer: inner"));
    }
}
