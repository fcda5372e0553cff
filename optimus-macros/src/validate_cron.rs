//! Refuses functions and options that make no sense with a schedule.

use quote::quote;

use crate::{
    errors::Errors,
    parse::function::{Model, Param, Role},
};

/// Reports what is wrong with a function under `#[optimus::cron]`.
pub(crate) fn check(model: &Model, errors: &mut Errors) {
    let Some(cron) = &model.cron else { return };
    for Param { pat, ty, .. } in model.arguments() {
        errors.refuse(
            quote!(#pat: #ty),
            "nobody passes arguments to a task of a schedule: take a `Tick`, a `Context` or \
             `#[data]`; for calls with arguments, put `#[optimus::task]` on the function and store \
             a schedule at run time, with `client.schedules().put(…)`",
        );
    }
    let ticks = model.params.iter().filter(|param| param.role == Role::Tick);
    for Param { pat, ty, .. } in ticks.skip(1) {
        errors.refuse(quote!(#pat: #ty), "a task has only one `Tick`: remove this parameter");
    }
    if let Some(attr) = model
        .attrs
        .body
        .iter()
        .find(|attr| attr.path().segments.last().is_some_and(|last| last.ident == "task"))
    {
        errors.refuse(
            attr,
            "`#[optimus::cron]` makes the function a task, too: remove `task`, and give `cron` its \
             options, as in `#[optimus::cron(\"@hourly\", queue = \"reports\")]`",
        );
    }
    if !model.options.after.is_empty() {
        errors.refuse(
            &cron.expression,
            "`after` has no meaning for a schedule, whose tasks all have the same biz id; submit \
             the tasks that wait in the handler",
        );
    }
    if let (Some(missed), true) =
        (cron.missed.as_ref().filter(|missed| *missed == "All"), cron.skips())
    {
        errors.refuse(
            missed,
            "`missed = \"all\"` submits many tasks at once, of which `overlap = \"skip\"` (the \
             default) leaves out all but one: add `overlap = \"queue\"` or `overlap = \"all\"`",
        );
    }
    if let (Some(jitter), Some(shortest), true) = (&cron.jitter, cron.shortest, cron.skips())
        && jitter.time >= shortest
    {
        errors.refuse(
            &jitter.written,
            format!(
                "`jitter` is not shorter than the {shortest:?} between two instants, so \
                 `overlap = \"skip\"` (the default) leaves out instants whose task before still \
                 waits: take a shorter jitter, or add `overlap = \"queue\"` or \
                 `overlap = \"all\"`"
            ),
        );
    }
    let queues = cron.overlap.as_ref().filter(|overlap| *overlap == "Queue");
    if let (Some(overlap), true) =
        (queues, model.options.lane.is_some() || model.options.gather.is_given)
    {
        errors.refuse(
            overlap,
            "`overlap = \"queue\"` is a lane of its own, so it can't be combined with `lane` or \
             `gather`",
        );
    }
}
