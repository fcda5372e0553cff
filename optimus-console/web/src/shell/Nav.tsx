// The menu of pages.

import { overview } from "../api/events";
import { may, seesAll } from "../api/session";
import { route } from "../state/route";
import { write } from "../state/hash";
import { Icon } from "../ui/Icon";
import { offered, type Place, placeOf } from "./places";

function Entry({ place }: { place: Place }) {
  const known = overview.value;
  const count = known && place.count?.(known);
  const isHere = placeOf(route.value.parts[0]) === place.page;
  return (
    <li>
      <a href={write([place.page])} aria-current={isHere ? "page" : undefined}>
        <Icon name={place.icon} />
        {place.text}
        {count !== undefined && <span class="nav-count num">{count}</span>}
      </a>
    </li>
  );
}

export function Nav({ isOpen, close }: { isOpen: boolean; close: () => void }) {
  const groups = offered(overview.value, { seesAll: seesAll.value, acts: may("operate") }).filter(
    (group) => group.length > 0,
  );
  return (
    <nav class={isOpen ? "nav is-open" : "nav"} aria-label="Pages" id="nav" onClick={close}>
      {groups.map((group) => (
        <ul key={group[0]?.page}>
          {group.map((place) => (
            <Entry key={place.page} place={place} />
          ))}
        </ul>
      ))}
    </nav>
  );
}
