// Acts on single tasks, up to 100 in one call.

import { post } from "../api/client";
import { count } from "../text/format";
import { ACTS, type TaskAct } from "./names";

interface Answers {
  answers: { id: string; ok: boolean; text: string }[];
}

const MOST_A_CALL = 100;

/** Acts on tasks and returns what came of it in words. Fails if nothing was done. */
export async function actOn(act: TaskAct, ids: string[], reason?: string): Promise<string> {
  const answers: Answers["answers"] = [];
  for (let from = 0; from < ids.length; from += MOST_A_CALL) {
    const some = ids.slice(from, from + MOST_A_CALL);
    const answer = await post<Answers>("tasks/act", { act, ids: some, reason });
    answers.push(...answer.answers);
  }
  return summary(act, answers);
}

export function summary(act: TaskAct, answers: Answers["answers"]): string {
  const done = answers.filter((answer) => answer.ok).length;
  const refused = answers.find((answer) => !answer.ok);
  const text = `${count(done, "task")} ${ACTS[act].done}`;
  if (refused === undefined) return `${text}.`;
  const left = `${answers.length - done} refused: ${refused.text}`;
  if (done === 0) throw new Error(left);
  return `${text}, ${left}`;
}
