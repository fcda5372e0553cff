//! The JSON key is the parameter's name, so each parameter needs a name.

#[optimus::task]
async fn tuple((a, b): (u8, u8)) {
    let _ = (a, b);
}

#[optimus::task]
async fn nameless(_: u8) {}

#[optimus::task]
async fn by_ref(ref name: String) {
    let _ = name;
}

fn main() {
    let _ = tuple((1, 2)).perform_async();
    let _ = nameless(1).perform_async();
    let _ = by_ref("a".to_owned()).perform_async();
}
