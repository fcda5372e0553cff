//! Which names and ids are accepted, and that an id is read back from its text.

use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn stored_ids_round_trip_and_sort_as_their_uuids(a in any::<u128>(), b in any::<u128>()) {
        let queue = QueueName::new("q").unwrap();
        let [a, b] = [a, b].map(|n| TaskId { queue: queue.clone(), uuid: Uuid::from_u128(n) });
        prop_assert_eq!(&TaskId::from_stored(queue, &a.stored()).unwrap(), &a);
        prop_assert_eq!(&a.to_string().parse::<TaskId>().unwrap(), &a);
        prop_assert_eq!(a.stored().cmp(&b.stored()), a.uuid.cmp(&b.uuid));
    }

    #[test]
    fn hostile_stored_ids_are_refused_and_not_misread(text in ".{0,30}") {
        let queue = QueueName::new("q").unwrap();
        if let Ok(id) = TaskId::from_stored(queue, &text) {
            prop_assert_eq!(id.stored(), text);
        }
    }
}

#[test]
fn queue_names_that_could_break_their_key_are_refused() {
    for name in ["", "a b", "a{b", "a}b", "a:b", "a/b", "a*b", "a\nb", "ä", &"x".repeat(129)] {
        assert!(QueueName::new(name).is_err(), "{name:?}");
    }
    assert_eq!(QueueName::new("mail-2.low_prio").unwrap().as_str(), "mail-2.low_prio");
    assert!(QueueName::new("x".repeat(128)).is_ok());
}

#[test]
fn the_uuid_of_a_task_has_the_time_when_it_was_made() {
    let text = "q/01890a5d-ac96-774b-bcce-b302099a8057";
    let id: TaskId = text.parse().unwrap();
    assert_eq!((id.made_ms(), id.uuid().to_string()), (0x0189_0a5d_ac96, text[2..].into()));
    assert_eq!((format!("{id:?}"), format!("{:?}", id.queue())), (text.into(), "\"q\"".into()));
    assert_eq!((String::from(id.clone()), String::from(id.queue)), (text.into(), "q".into()));
}

#[test]
fn a_uuid_of_another_version_has_no_time() {
    for text in ["f47ac10b-58cc-4372-a567-0e02b2c3d479", "886313e1-3b8a-5372-9b90-0c9aee199e5d"] {
        let id: TaskId = format!("q/{text}").parse().unwrap();
        assert_eq!(id.made_ms(), 0);
    }
}

#[test]
fn each_id_has_one_text_only() {
    let read = |stored: &str| TaskId::from_stored(QueueName::new("q").unwrap(), stored);
    let largest = "2zzzzzzzzzzzzzzzzzzzzz";
    assert_eq!(read(largest).unwrap().uuid(), Uuid::max());
    // The first digit of the first text would need a bit that no uuid has.
    let foreign = ["!zzzzzzzzzzzzzzzzzzzzz", "---------------------!"];
    for wrong in ["3zzzzzzzzzzzzzzzzzzzzz", foreign[0], foreign[1], &largest[1..], ""] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_worker_id_names_its_process_in_characters_that_are_allowed_in_a_key() {
    let id = WorkerId::generate("web 1.example{x}", 42);
    assert!(id.as_str().starts_with("web-1.example-x--42-"), "{id}");
    assert_eq!((id.to_string(), format!("{id:?}")), (id.as_str().into(), id.as_str().into()));
    assert_ne!(WorkerId::generate("a", 1), WorkerId::generate("a", 1));
    assert_eq!(WorkerId::from_stored(id.as_str()), id);
}

#[test]
fn a_worker_id_is_read_back_from_its_text_and_other_text_is_refused() {
    let id = WorkerId::generate("web-1.example", 42);
    assert_eq!(id.to_string().parse(), Ok(id.clone()));
    let random = &id.as_str()[id.as_str().len() - 8..];
    for wrong in ["", "web-1", "web-1-42", "web-42-9f3c01aß", "-42-9f3c01ab", "a b-42-9f3c01ab"] {
        let problem = wrong.parse::<WorkerId>().unwrap_err();
        assert_eq!(problem, InvalidName::NotAWorkerId(wrong.into()));
    }
    let long = format!("{}-42-{random}", "x".repeat(NAME_BYTES_MAX + 1));
    assert!(long.parse::<WorkerId>().is_err());
}

#[test]
fn a_queue_is_read_from_a_text_and_another_text_is_refused() {
    assert_eq!("mail.v2".parse(), QueueName::new("mail.v2"));
    assert!("a mail".parse::<QueueName>().unwrap_err().to_string().starts_with("queue name: "));
}
