//! The words of Optimus and their meanings.
#![doc = include_str!("glossary.md")]
