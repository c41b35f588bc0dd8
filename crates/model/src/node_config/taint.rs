//! Taints, spelled as kubectl does: `key=value:Effect`, `key:Effect`.

use std::fmt;
use std::str::FromStr;

use super::label::{check_label_key, check_label_value};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    pub key: String,
    pub value: String,
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Effect {
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::NoSchedule => "NoSchedule",
            Effect::PreferNoSchedule => "PreferNoSchedule",
            Effect::NoExecute => "NoExecute",
        }
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let eq = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{eq}{}:{}", self.key, self.value, self.effect.as_str())
    }
}

impl FromStr for Taint {
    type Err = String;

    fn from_str(text: &str) -> Result<Taint, String> {
        let (left, effect) = text.rsplit_once(':').ok_or_else(|| {
            format!("{text:?} is not a taint: give KEY[=VALUE]:EFFECT, like gpu=yes:NoSchedule")
        })?;
        let effect = match effect {
            "NoSchedule" => Effect::NoSchedule,
            "PreferNoSchedule" => Effect::PreferNoSchedule,
            "NoExecute" => Effect::NoExecute,
            _ => {
                return Err(format!(
                    "{effect:?} is not the effect of a taint: NoSchedule, PreferNoSchedule or NoExecute"
                ));
            }
        };
        let (key, value) = left.split_once('=').unwrap_or((left, ""));
        check_label_key(key)?;
        check_label_value(value)?;
        Ok(Taint { key: key.to_owned(), value: value.to_owned(), effect })
    }
}

super::as_text!(Taint);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_kubectl_spells_them() {
        for text in ["gpu=yes:NoSchedule", "gpu:NoExecute", "example.com/a=b:PreferNoSchedule"] {
            assert_eq!(text.parse::<Taint>().unwrap().to_string(), text);
        }
        assert_eq!("a=:NoExecute".parse::<Taint>().unwrap().to_string(), "a:NoExecute");
        for bad in ["", "gpu", "gpu=yes", "gpu:Never", ":NoSchedule", "a b:NoSchedule", "a=b c:NoSchedule"] {
            assert!(bad.parse::<Taint>().is_err(), "{bad}");
        }
    }
}
