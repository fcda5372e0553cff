//! The options that a definition makes of the arguments, such as a biz id: [`KeyTemplate`]. A step
//! of which one argument is not known yet fills those that do not need it.

/// An option that a definition makes of the arguments.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct KeyTemplate {
    /// Its name: `biz_id`, `lane` or `by`.
    pub option: &'static str,
    /// The text before the first value, between the values, and after the last one.
    pub literals: &'static [&'static str],
}

/// The values of the arguments that are known, as texts of the options.
#[doc(hidden)]
#[derive(Debug, Clone, Default)]
pub struct KeyTexts(Vec<(&'static str, usize, String)>);

impl KeyTexts {
    /// Adds the value at one place of an option, counted from 0.
    pub fn put(&mut self, option: &'static str, place: usize, text: String) {
        self.0.push((option, place, text));
    }

    /// Fills the option; `None` if a value of it is not known.
    pub(crate) fn fill(&self, template: &KeyTemplate) -> Option<String> {
        let KeyTemplate { option, literals } = template;
        let mut filled = String::new();
        for (place, literal) in literals.iter().enumerate() {
            filled.push_str(literal);
            if place + 1 < literals.len() {
                let is_it = |(name, at, _): &&(&str, usize, String)| name == option && *at == place;
                filled.push_str(&self.0.iter().find(is_it)?.2);
            }
        }
        Some(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_only_if_all_its_values_are_known() {
        let template = KeyTemplate { option: "lane", literals: &["user-", "/", ""] };
        let mut texts = KeyTexts::default();
        texts.put("lane", 1, "b".into());
        texts.put("biz_id", 0, "x".into());
        assert_eq!(texts.fill(&template), None);
        texts.put("lane", 0, "a".into());
        assert_eq!(texts.fill(&template).as_deref(), Some("user-a/b"));
        let fixed = KeyTemplate { option: "by", literals: &["all"] };
        assert_eq!(texts.fill(&fixed).as_deref(), Some("all"));
    }
}
