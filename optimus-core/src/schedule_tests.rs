//! Which schedules are refused, and what is said of them.

use crate::{BoxError, Call, Context, Task, TaskId, cron_expression::Day, options::Due};

use super::*;

#[derive(Serialize, Deserialize)]
struct Digest {
    user: u64,
}

impl Task for Digest {
    const NAME: &'static str = "digest";
    type Output = ();

    async fn run(self, _: Context) -> Result<(), BoxError> {
        Ok(())
    }
}

fn digest() -> Call<Digest> {
    Digest { user: 7 }.call()
}

fn hourly() -> Schedule {
    Schedule::cron("hourly", "@hourly")
}

fn refusal(schedule: Schedule) -> String {
    let problem = schedule.check().expect_err("the schedule is refused");
    assert!(problem.is_invalid());
    problem.to_string()
}

#[test]
fn a_schedule_that_makes_no_sense_is_refused_with_the_reason() {
    let id = TaskId::new(crate::QueueName::new("q").unwrap());
    let an_hour = Duration::from_secs(3600);
    for (schedule, problem) in [
        (Schedule::cron("a b", "@hourly").call(digest()), "contains ' '"),
        (Schedule::cron("", "@hourly").call(digest()), "the name is empty"),
        (Schedule::cron("x", "61 * * * *").call(digest()), "\"61\" is not a valid minute"),
        (Schedule::cron("x", "0 0 30 2 *").call(digest()), "no year has such a date"),
        (hourly().tz("Asia/Shangai").call(digest()), "no time zone \"Asia/Shangai\""),
        (Schedule::every("x", Duration::ZERO).call(digest()), "every(…) takes a second to"),
        (Schedule::every("x", an_hour).tz("Asia/Tokyo").call(digest()), "has no local times"),
        (hourly().jitter(25 * an_hour).call(digest()), "a jitter is at most a day"),
        (hourly().missed(Missed::All).call(digest()), "set the overlap to queue or all"),
        (hourly().jitter(an_hour).call(digest()), "not shorter than the 3600s between two"),
        (Schedule::every("x", an_hour).jitter(2 * an_hour).call(digest()), "not shorter than"),
        (hourly(), "name the task with .call(…)"),
        (hourly().call(digest().id(id)), "its call has an id"),
        (hourly().call(digest().due(Due::In(an_hour))), "its call has a due time"),
        (hourly().call(digest().queue("a b")), "contains ' '"),
        (hourly().overlap(Overlap::Queue).call(digest().lane("x")), "has a lane already"),
    ] {
        let text = refusal(schedule);
        assert!(text.contains(problem), "{text}");
    }
}

#[test]
fn what_keeps_its_instants_is_accepted() {
    let an_hour = Duration::from_secs(3600);
    for schedule in [
        hourly().missed(Missed::All).overlap(Overlap::Queue),
        hourly().missed(Missed::All).overlap(Overlap::All),
        hourly().jitter(Duration::from_secs(3599)),
        hourly().jitter(an_hour).overlap(Overlap::All),
        Schedule::cron("x", "0 9 29 2 *").jitter(24 * an_hour),
    ] {
        schedule.call(digest()).check().expect("the schedule is valid");
    }
}

#[test]
fn tasks_that_queue_are_in_a_lane_of_the_schedule() {
    let checked = hourly().overlap(Overlap::Queue).call(digest()).check().unwrap();
    let lane = checked.submission.into_fields().lane.unwrap();
    assert_eq!((&*lane.key, lane.width.get()), ("schedule:hourly", 1));
    assert_eq!(hourly().call(digest()).check().unwrap().submission.lane, None);
}

#[test]
fn an_error_names_the_part_of_an_expression_that_is_wrong() {
    for (text, problem) in [
        ("", "it has 0 fields"),
        ("* * * *", "it has 4 fields"),
        ("* * * * * * *", "it has 7 fields"),
        ("60 * * * *", "\"60\" is not a valid minute, which is a number from 0 to 59"),
        ("* 24 * * *", "\"24\" is not a valid hour"),
        ("* * 0 * *", "is not a valid day of the month"),
        ("* * * 13 *", "is not a valid month, which is a number from 1 to 12, or JAN to DEC"),
        ("* * * * 8", "is not a valid weekday"),
        ("* * * * MOM", "is not a valid weekday, which is a number from 0 to 7, or SUN to SAT"),
        ("*/0 * * * *", "the step of the minute is a number from 1 to 59"),
        ("*/90 * * * *", "the step of the minute"),
        ("30-10 * * * *", "a range goes up"),
        ("5, * * * *", "\"\" is not a valid minute"),
        ("* * 15W * *", "the nearest weekday (W) does not exist"),
        ("* * * * MON#6", "after `#` comes 1 to 5"),
        ("0 0 31 4,6 *", "no year has such a date"),
        ("@dayly", "there is no @dayly; there are @hourly"),
        ("@reboot", "there is no @reboot"),
        ("+5 * * * *", "is not a valid minute"),
    ] {
        let error = CronExpression::parse(text).unwrap_err();
        assert!(error.contains(problem), "{text}: {error}");
    }
    for (one, same) in [
        ("0 0 * * 7", "0 0 * * SUN"),
        ("0 0 * * fri-sun", "0 0 * * 5-7"),
        ("0 0 ? * ?", "@daily"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("0 0 * * */2", "0 0 * * 0,2,4,6"),
        ("0 0 1 jan-mar *", "0 0 1 1,2,3 *"),
        ("  0   0 * * *  ", "0 0 * * *"),
    ] {
        let parsed = CronExpression::parse(one).unwrap();
        let other = CronExpression::parse(same).unwrap();
        assert_eq!((parsed.minutes, parsed.hours), (other.minutes, other.hours), "{one}");
        for day in 1..=28 {
            for weekday in 0..7 {
                let day = Day { month: 2, number: day, weekday, days_in_month: 28 };
                assert_eq!(parsed.has_day(day), other.has_day(day), "{one} {day:?}");
            }
        }
    }
}

#[test]
fn no_text_breaks_the_parser() {
    proptest::proptest!(|(text in ".*", similar in "[0-9*/,#L@MONSUa-z -]{0,24}")| {
        let _ = CronExpression::parse(&text);
        let _ = CronExpression::parse(&similar);
    });
}
