//! Colours, which only repeat what words say.

/// What a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    /// The head of a table, or the name of a field.
    Head,
    /// Nothing to look at.
    Pale,
    Good,
    Warning,
    Bad,
}

impl Tone {
    /// Returns the text in the colour of the tone.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            _ if text.is_empty() => return String::new(),
            Self::Plain => return text.to_owned(),
            Self::Head => "1",
            Self::Pale => "2",
            Self::Good => "32",
            Self::Warning => "33",
            Self::Bad => "31",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
