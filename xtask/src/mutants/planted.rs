//! The files in which all bugs of Rust code are planted: [`planted`].

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use anyhow::{Context as _, ensure};
use optimus_testkit::Mutant;

use super::switch::{Source, asked_by_bodies};
use crate::cargo::{root, run};

/// Returns the text of each file that has mutants of Rust code: in it, functions choose their body.
/// `scratch` is a folder for patched files.
pub(super) fn planted(
    mutants: &[Mutant],
    scratch: &Path,
) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut sources = BTreeMap::new();
    for mutant in mutants.iter().filter(|mutant| !mutant.is_of_scripts()) {
        for path in &mutant.changes {
            write(&fs::read_to_string(root().join(path))?, &scratch.join(path))?;
        }
        apply(mutant, scratch)?;
        for path in &mutant.changes {
            let file = path.display();
            if !sources.contains_key(path) {
                let source = Source::read(&fs::read_to_string(root().join(path))?);
                sources.insert(path.clone(), source);
            }
            let text = fs::read_to_string(scratch.join(path))?;
            let is_added = sources.get_mut(path).is_some_and(|it| it.add(&mutant.name, &text));
            ensure!(is_added, "{} changes {file} outside of functions", mutant.path.display());
        }
    }
    let mut files: BTreeMap<PathBuf, String> =
        sources.into_iter().map(|(path, source)| (path, source.switched())).collect();
    for path in files.keys().map(|file| library_of(file)).collect::<anyhow::Result<HashSet<_>>>()? {
        let text = match files.remove(&path) {
            Some(text) => text,
            None => fs::read_to_string(root().join(&path))?,
        };
        files.insert(path, text + &asked_by_bodies());
    }
    Ok(files)
}

/// Returns the path of the library that has a file.
fn library_of(file: &Path) -> anyhow::Result<PathBuf> {
    let package = file.components().next();
    let package = package.with_context(|| format!("{} is in no package", file.display()))?;
    Ok(Path::new(&package).join("src/lib.rs"))
}

/// Applies a patch to the files of a folder.
pub(super) fn apply(mutant: &Mutant, folder: &Path) -> anyhow::Result<()> {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn"]).arg(&mutant.path).current_dir(folder);
    // Otherwise git treats the folder as one of the repository, and changes nothing.
    let above = folder.parent().unwrap_or(folder);
    git.env_remove("GIT_DIR").env("GIT_CEILING_DIRECTORIES", above);
    run(&mut git).with_context(|| format!("{} no longer applies", mutant.path.display()))
}

/// Writes a file, unless it is already equal.
pub(super) fn write(text: &str, to: &Path) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::read(to).is_ok_and(|found| found == text.as_bytes()) {
        return Ok(());
    }
    fs::write(to, text)
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;
    use crate::mutants::FOLDER;

    #[test]
    fn every_mutant_changes_scripts_or_functions() {
        let mutants = Mutant::all(&root().join(FOLDER)).unwrap();
        let scratch = env::temp_dir().join(format!("optimus-planted-{}", process::id()));
        let files = planted(&mutants, &scratch);
        fs::remove_dir_all(&scratch).unwrap();
        let text: String = files.unwrap().into_values().collect();
        for mutant in mutants.iter().filter(|mutant| !mutant.is_of_scripts()) {
            assert!(text.contains(&format!("is_planted(\"{}\")", mutant.name)), "{}", mutant.name);
        }
    }
}
