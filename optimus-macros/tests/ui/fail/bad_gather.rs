//! A task that gathers its calls takes the list of them, and says for how long and how many.

#[derive(serde::Serialize, serde::Deserialize)]
struct Event {
    user: u64,
}

#[optimus::task(gather = "10s")]
async fn no_number(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10 | 500")]
async fn no_unit(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "0s | 500")]
async fn no_time(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 1")]
async fn too_few(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = 500)]
async fn no_text(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500")]
async fn one_event(event: Event) {
    let _ = event.user;
}

#[optimus::task(gather = "10s | 500")]
async fn no_list() {}

#[optimus::task(gather = "10s | 500")]
async fn two_lists(users: Vec<u64>, events: Vec<Event>) {
    let _ = (users, events);
}

#[optimus::task(gather = "10s | 500")]
async fn one_value_and_a_list(day: u32, events: Vec<Event>) {
    let _ = (day, events);
}

#[optimus::task(gather = "10s | 500")]
async fn slice(events: &[Event]) {
    let _ = events;
}

#[optimus::task]
async fn a_result_for_each_of_none(events: Vec<Event>) -> Result<optimus::Each<u64>, String> {
    Ok(events.iter().map(|event| event.user).collect())
}

#[optimus::task(gather = "10s | 500")]
async fn borrows(texts: Vec<&str>) {
    let _ = texts;
}

#[optimus::task(by = "{events.user}")]
async fn no_gather(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500", by = "")]
async fn empty_key(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500", by = "{user()}")]
async fn call(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500", by = "{usr}")]
async fn no_field(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500", by = "{mailer}")]
async fn of_the_worker(events: Vec<Event>, #[data] mailer: u64) {
    let _ = (events, mailer);
}

#[optimus::task(gather = "10s | 500", lane = "{user}")]
async fn in_a_lane(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(gather = "10s | 500", expires_in = "10s")]
async fn expires_before(events: Vec<Event>) {
    let _ = events;
}

#[optimus::task(batch = "10s | 500")]
async fn synonym(events: Vec<Event>) {
    let _ = events;
}

fn main() {
    // A refused definition causes no other error.
    drop(no_number(Event { user: 7 }));
    drop(two_lists(7, Event { user: 7 }));
    drop(one_event(Event { user: 7 }));
}
