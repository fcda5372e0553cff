// Says that a queue is paused, by whom and why.

import type { Paused } from "../../api/types";
import { Ago } from "../../ui/Ago";
import { Icon } from "../../ui/Icon";
import { Text } from "../../ui/Text";

export function PausedBanner({ paused }: { paused: Paused | null }) {
  if (!paused) return null;
  return (
    <div class="banner is-warning" role="status">
      <Icon name="pause" />
      <p>
        Paused
        {paused.by && (
          <>
            {" "}
            by <Text value={paused.by} max={80} />
          </>
        )}
        {paused.since_ms !== null && (
          <>
            , <Ago at={paused.since_ms} />
          </>
        )}
        {paused.why && (
          <>
            : <Text value={paused.why} max={500} />
          </>
        )}
      </p>
    </div>
  );
}
