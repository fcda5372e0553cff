// Starts the console.

import { render } from "preact";
import "./css/index.css";
import { follow } from "./api/events";
import { listenToKeys } from "./state/keys";
import { Shell } from "./shell/Shell";

const place = document.getElementById("app");
if (place !== null) {
  listenToKeys();
  follow();
  render(<Shell />, place);
}
