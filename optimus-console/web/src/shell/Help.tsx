// The keys.

import { overlay, PLACES } from "../state/keys";
import { Dialog } from "../ui/Dialog";

const KEYS: [string[], string][] = [
  [["/"], "Search (also ⌘K or Ctrl+K)"],
  [["j"], "Next row"],
  [["k"], "Previous row"],
  [["Enter"], "Open the row"],
  [["x"], "Select the row"],
  [["Esc"], "Close a dialog"],
  [["?"], "This list"],
];

function Row({ keys, text }: { keys: string[]; text: string }) {
  return (
    <tr>
      <th scope="row">
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </th>
      <td>{text}</td>
    </tr>
  );
}

export function Help() {
  const close = () => {
    overlay.value = "";
  };
  return (
    <Dialog title="Keys" close={close}>
      <table class="keys">
        <caption class="hidden">Keys</caption>
        <tbody>
          {KEYS.map(([keys, text]) => (
            <Row key={text} keys={keys} text={text} />
          ))}
          {Object.entries(PLACES).map(([key, [, text]]) => (
            <Row key={text} keys={["g", key]} text={text} />
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
