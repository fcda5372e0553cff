//! `release`: Working → Ready | Delayed, without using an attempt.

use optimus_core::{
    Due, Submission, TaskState,
    broker::{Give, Release, Reported, StartBy},
};

use crate::{
    acts::{Grants, given, ids_of, ms},
    bench::{Bench, START},
    jobs::{job, jobs},
};

fn head() -> Give {
    Give::Head
}

fn stored(tasks: &[Submission]) -> Vec<String> {
    tasks.iter().map(|task| task.id().stored()).collect()
}

async fn released_tasks_go_to_the_head_in_their_old_order(bench: Bench) {
    let tasks = jobs(3);
    bench.submit(0, &tasks).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 3).await;
    let later = bench.add(5, job()).await;
    let before = bench.dump().await;

    let back: Vec<Release> =
        claimed.leases(&worker).iter().map(|lease| given(lease, Give::Head)).collect();
    assert!(bench.release(6, &back).await.is_empty());

    assert_eq!(bench.ready_list().await[..3], stored(&tasks));
    assert_eq!(bench.changes(&before).await, ["ready", "working:w"]);
    let again = bench.claim(7, &worker, 2, 8).await;
    assert_eq!(again.ids(), [ids_of(&tasks), vec![later]].concat());
    assert!(again.grants.iter().all(|grant| grant.tries == (0, 0, 0)));
}

async fn a_requeued_task_is_released_to_the_head_like_any_other(bench: Bench) {
    let tasks = jobs(2);
    bench.submit(0, &tasks).await;
    bench.at(50).cancel(tasks[1].id()).await.unwrap();
    bench.at(50).requeue(tasks[1].id()).await.unwrap();
    let worker = bench.worker(50, "w").await;
    let leases = bench.claim(50, &worker, 1, 8).await.leases(&worker);
    let back: Vec<_> = leases.iter().map(|lease| given(lease, head())).collect();
    assert!(bench.release(60, &back).await.is_empty());
    assert_eq!(bench.ready_list().await, stored(&tasks));
    assert_eq!(bench.claim(60, &worker, 2, 8).await.ids(), ids_of(&tasks));
}

async fn a_ranked_task_keeps_its_rank(bench: Bench) {
    let id = bench.add(0, job().priority(2)).await;
    let plain = bench.add(0, job()).await;
    let score = bench.score("priority", &id.stored()).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(0, &worker, 1, 2).await;
    let back: Vec<_> = claimed.leases(&worker).iter().map(|lease| given(lease, head())).collect();
    assert!(bench.release(9, &back).await.is_empty());
    assert_eq!(bench.score("priority", &id.stored()).await, score);
    assert_eq!(bench.ready_list().await, [plain.stored()]);
}

async fn a_snoozed_task_comes_back_after_its_wait_without_a_count(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.release(3, &[given(&lease, Give::Snooze(ms(40)))]).await.is_empty());
    assert_eq!(bench.state(&id).await, TaskState::Delayed);
    assert_eq!(bench.score("delayed", &id.stored()).await, Some(START + 43));
    assert_eq!(bench.field("tries", &id.stored()).await, None);
    assert_eq!(bench.take(43, &worker, 2).await.id, id);
}

async fn a_task_that_was_started_once_does_not_expire(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    for (seq, give) in [(1, Give::Snooze(ms(0))), (3, Give::Interrupted)] {
        let id = bench.add(0, job().expires_in(ms(90))).await;
        let claimed = bench.claim(0, &worker, seq, 1).await;
        assert_eq!(claimed.grants[0].start_by, StartBy::AsSubmitted);
        let lease = claimed.leases(&worker).remove(0);
        assert!(bench.release(0, &[given(&lease, give)]).await.is_empty());
        assert_eq!(bench.field("tries", &id.stored()).await.as_deref(), Some("0:0:0:0"));
        let claimed = bench.claim(0, &worker, seq + 1, 1).await;
        assert_eq!((&claimed.grants[0].id, claimed.grants[0].tries), (&id, (0, 0, 0)));
        assert_eq!(claimed.grants[0].start_by, StartBy::Started);
    }
}

async fn a_task_that_was_not_started_still_expires(bench: Bench) {
    let worker = bench.worker(0, "w").await;
    let id = bench.add(0, job().expires_in(ms(90))).await;
    for (seq, give) in [(1, Give::Head), (2, Give::Misfit(ms(0)))] {
        let lease = bench.take(0, &worker, seq).await;
        assert!(bench.release(0, &[given(&lease, give)]).await.is_empty());
    }
    let claimed = bench.claim(0, &worker, 3, 1).await;
    assert_eq!((&claimed.grants[0].id, claimed.grants[0].tries), (&id, (0, 0, 1)));
    assert_eq!(claimed.grants[0].start_by, StartBy::AsSubmitted);
}

async fn a_task_that_cannot_expire_gets_no_entry_for_its_start(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    let lease = bench.take(0, &worker, 1).await;
    assert!(bench.release(0, &[given(&lease, Give::Interrupted)]).await.is_empty());
    assert_eq!(bench.field("tries", &id.stored()).await, None);
    assert_eq!(bench.take(0, &worker, 2).await.id, id);
}

async fn a_misfit_is_only_counted(bench: Bench) {
    let id = bench.add(0, job()).await;
    let worker = bench.worker(0, "w").await;
    for round in 1..=3 {
        let lease = bench.take(u64::from(round), &worker, u64::from(round)).await;
        let misfit = given(&lease, Give::Misfit(ms(1)));
        assert!(bench.release(u64::from(round), &[misfit]).await.is_empty());
        assert_eq!(bench.tries(&id).await, (0, 0, round));
    }
    assert_eq!(bench.field("errors", &id.stored()).await, None);
}

async fn a_start_resets_misfits(bench: Bench) {
    let rounds = [(Give::Snooze(ms(1)), None), (Give::Interrupted, Some(ms(9_000)))];
    for (give, expires_in) in rounds {
        bench.restore(&crate::dump::Dump::new()).await;
        let call = expires_in.map_or_else(job, |expires_in| job().expires_in(expires_in));
        let id = bench.add(0, call).await;
        let worker = bench.worker(0, "w").await;
        let gives = [Give::Misfit(ms(1)), Give::Head, Give::Misfit(ms(1)), give, Give::Head];
        for (at, (give, misfits)) in (1..).zip(gives.into_iter().zip([1, 1, 2, 0, 0])) {
            let lease = bench.take(at, &worker, at).await;
            assert!(bench.release(at, &[given(&lease, give)]).await.is_empty());
            assert_eq!(bench.tries(&id).await, (0, 0, misfits), "{give:?}");
        }
        let claimed = bench.claim(9, &worker, 9, 1).await;
        let start_by = &claimed.grants[0].start_by;
        assert_eq!(*start_by == StartBy::Started, expires_in.is_some());
    }
}

async fn a_released_task_with_a_requested_cancel_is_cancelled(bench: Bench) {
    for give in [head(), Give::Snooze(ms(9)), Give::Misfit(ms(9))] {
        bench.restore(&crate::dump::Dump::new()).await;
        let id = bench.add(0, job().biz_id("b")).await;
        let worker = bench.worker(0, "w").await;
        let lease = bench.take(0, &worker, 1).await;
        bench.wait(&id, "c").await;
        bench.at(0).cancel(&id).await.unwrap();
        let (broker, back) = (bench.at(5), [given(&lease, give)]);
        let call = broker.release_call(&bench.queue, &worker, &back);
        let expected = Reported { cancelled: vec![0], ..Reported::default() };
        assert_eq!(broker.report(call).await.unwrap(), expected, "{give:?}");
        assert_eq!(bench.state(&id).await, TaskState::Cancelled, "{give:?}");
        assert_eq!(bench.score("cancelled", &id.stored()).await, Some(START + 5));
        assert_eq!(bench.completions("c").await, [format!("{} cancelled", id.stored())]);
        let names = bench.names().await;
        assert!(
            !["biz:job:b", "cancel", "delayed", "ready", "tries"]
                .iter()
                .any(|name| names.iter().any(|n| n == name))
        );
        assert_eq!(bench.duplicate_of(6, job().biz_id("b")).await, None);
    }
}

async fn a_released_task_that_was_delayed_keeps_its_position(bench: Bench) {
    let delayed = bench.add(0, job().due(Due::In(ms(50)))).await;
    let worker = bench.worker(0, "w").await;
    let claimed = bench.claim(50, &worker, 1, 1).await;
    let later = bench.add(60, job()).await;
    let lease = claimed.leases(&worker).remove(0);
    let back = given(&lease, Give::Head);
    assert!(bench.release(61, &[back]).await.is_empty());
    assert_eq!(bench.claim(61, &worker, 2, 8).await.ids(), [delayed, later]);
}

async fn a_release_adds_a_wakeup(bench: Bench) {
    bench.submit(0, &jobs(3)).await;
    let worker = bench.worker(0, "w").await;
    let leases = bench.claim(0, &worker, 1, 3).await.leases(&worker);
    assert!(bench.answer_wakeup().await);
    for (lease, give, wakes) in
        [(0, Give::Snooze(ms(50)), true), (1, Give::Misfit(ms(60)), false), (2, Give::Head, true)]
    {
        assert!(bench.release(0, &[given(&leases[lease], give)]).await.is_empty());
        assert_eq!(bench.answer_wakeup().await, wakes, "{give:?}");
    }
}

on_both![
    released_tasks_go_to_the_head_in_their_old_order,
    a_requeued_task_is_released_to_the_head_like_any_other,
    a_ranked_task_keeps_its_rank,
    a_snoozed_task_comes_back_after_its_wait_without_a_count,
    a_task_that_was_started_once_does_not_expire,
    a_task_that_was_not_started_still_expires,
    a_task_that_cannot_expire_gets_no_entry_for_its_start,
    a_misfit_is_only_counted,
    a_start_resets_misfits,
    a_released_task_with_a_requested_cancel_is_cancelled,
    a_released_task_that_was_delayed_keeps_its_position,
    a_release_adds_a_wakeup,
];
