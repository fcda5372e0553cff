// The menu of pages.

import { overview } from "../api/events";
import { route } from "../state/route";
import { write } from "../state/hash";
import { Icon } from "../ui/Icon";
import { FEATURES, LAST, type Place, placeOf, PLACES } from "./places";

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
  const features = overview.value?.features;
  const used = FEATURES.filter((place) => features?.[place.page]);
  return (
    <nav class={isOpen ? "nav is-open" : "nav"} aria-label="Pages" id="nav" onClick={close}>
      <ul>
        {PLACES.map((place) => (
          <Entry key={place.page} place={place} />
        ))}
      </ul>
      {used.length > 0 && (
        <ul>
          {used.map((place) => (
            <Entry key={place.page} place={place} />
          ))}
        </ul>
      )}
      <ul>
        {LAST.map((place) => (
          <Entry key={place.page} place={place} />
        ))}
      </ul>
    </nav>
  );
}
