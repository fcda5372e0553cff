//! The words of Optimus. There is nothing here but their meanings.
#![doc = include_str!("glossary.md")]
