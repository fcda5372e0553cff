//! Code that the macros accept, one rule in each file, and what this code does.
#![allow(clippy::all, clippy::pedantic, reason = "this is the code of users, in many styles")]

mod after;
pub mod attributes;
mod blocking;
mod cron;
mod custom_backoff;
mod data;
mod defaults;
pub mod everything;
mod flows;
mod from_macro_rules;
mod gather;
mod many_arguments;
mod raw_identifiers;
mod registered;
mod renamed_crate;
mod result_aliases;
mod result_not_kept;
pub mod same_name_module;
mod serde_attributes;
mod shadowed_names;
mod sharded;
mod source;
mod steps_with_templates;
mod unread_template;

macro_rules! run {
    ($($file:ident;)+) => {$(
        #[test]
        fn $file() {
            $file::main();
        }
    )+};
}

run! {
    after;
    attributes;
    blocking;
    cron;
    custom_backoff;
    data;
    defaults;
    everything;
    flows;
    from_macro_rules;
    gather;
    many_arguments;
    raw_identifiers;
    registered;
    renamed_crate;
    result_aliases;
    result_not_kept;
    same_name_module;
    serde_attributes;
    shadowed_names;
    sharded;
    source;
    steps_with_templates;
    unread_template;
}
