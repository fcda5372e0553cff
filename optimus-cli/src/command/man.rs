//! `optimus man`: the man page.

use std::{fs, path::PathBuf};

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::{
    arguments::Arguments,
    failure::{Exit, Failure},
    output::Out,
};

/// Print the man page, or write one for each command.
///
/// `optimus man | man -l -` shows it.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each command into this directory instead.
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
}

pub(crate) fn run(command: &Man, out: &Out) -> Result<Exit, Failure> {
    let Some(folder) = &command.to else {
        let mut page = Vec::new();
        Page::new(Arguments::command()).render(&mut page)?;
        Out::page(&page)?;
        return Ok(Exit::Done);
    };
    let written = fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder));
    written.map_err(|problem| {
        Failure::new(format!("the pages can't be written to {}: {problem}", folder.display()))
    })?;
    out.hint(&format!("the pages are in {}", folder.display()));
    Ok(Exit::Done)
}
