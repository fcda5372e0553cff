//! Who uses the program, for people who see later who has paused or changed something.

use std::env;

use optimus_core::platform;

/// The longest name.
const NAME_CHARS: usize = 100;
/// The variables of the environment that may name the user.
const USERS: [&str; 3] = ["USER", "LOGNAME", "USERNAME"];

/// Returns the name of `--operator`, else that of the user. A container or a job of CI may have no
/// name of a user: then its machine is named.
pub(crate) fn name(given: Option<&str>) -> String {
    let given = given.map(clean).filter(|name| !name.is_empty());
    let user = || {
        let names = USERS.iter().filter_map(|name| env::var(name).ok());
        names.map(|name| clean(&name)).find(|name| !name.is_empty())
    };
    given.or_else(user).unwrap_or_else(|| clean(&format!("somebody on {}", platform::host())))
}

fn clean(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect()
}
