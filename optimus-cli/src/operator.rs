//! Who uses the program, for people who see later who has paused or changed something.

use std::{env, fs};

use optimus_core::platform;

/// The longest name.
const NAME_CHARS: usize = 100;
/// The variables of the environment that may name the user.
const USERS: [&str; 3] = ["USER", "LOGNAME", "USERNAME"];
/// The users of the machine.
const PASSWD: &str = "/etc/passwd";

/// Returns the name of `--operator`, else that of the user. cron, `sudo` and containers may set no
/// name: then it is that of the user's number, else the number with the machine.
pub(crate) fn name(given: Option<&str>) -> String {
    let given = given.map(clean).filter(|name| !name.is_empty());
    let user = || {
        let names = USERS.iter().filter_map(|name| env::var(name).ok());
        names.map(|name| clean(&name)).find(|name| !name.is_empty())
    };
    given.or_else(user).unwrap_or_else(unnamed)
}

#[cfg(unix)]
fn unnamed() -> String {
    let uid = rustix::process::getuid().as_raw();
    let named = fs::read_to_string(PASSWD).ok().and_then(|users| name_of(&users, uid));
    named.unwrap_or_else(|| clean(&format!("user {uid} on {}", platform::host())))
}

#[cfg(not(unix))]
fn unnamed() -> String {
    clean(&format!("somebody on {}", platform::host()))
}

/// Returns the name of a user in the form of `/etc/passwd`: `name:x:uid:…`.
fn name_of(users: &str, uid: u32) -> Option<String> {
    let number = uid.to_string();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| clean(name))
    });
    name.filter(|name| !name.is_empty())
}

fn clean(name: &str) -> String {
    name.trim().chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_by_the_number() {
        let users = "root:x:0:0:root:/:/bin/sh\nann:x:1000:100::/:/bin/sh\n:x:7:7\nbad";
        let found = [0, 1_000, 7, 100].map(|uid| name_of(users, uid));
        assert_eq!(found, [Some("root".to_owned()), Some("ann".to_owned()), None, None]);
    }
}
