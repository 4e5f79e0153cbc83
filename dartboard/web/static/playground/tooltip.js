/**
 * The text of a candidate beside its dot: on hover and on keyboard focus, gone with Escape.
 */

import { h, quoted, set } from "../dom.js";
import { fixed, percent } from "../numbers.js";
import { named } from "./names.js";

/** @param {HTMLElement} frame positioned ancestor that the tooltip stays within */
export function createTooltip(frame) {
  const box = h("div", { class: "tooltip", role: "tooltip", id: "map-tooltip", hidden: true });
  frame.append(box);

  return {
    /** @param {any} candidate @param {string} role what it is here @param {DOMRect} at of the dot */
    show(candidate, role, at) {
      set(
        box,
        h("strong", {}, named(candidate, 90)),
        h("span", { class: "tooltip-role" }, role),
        h("p", {}, quoted(candidate.text, 320)),
        h(
          "span",
          { class: "hint num" },
          `cosine ${fixed(candidate.similarity)} · distance ${fixed(candidate.distance, 3)} · ` +
            `P(t|q) ${percent(candidate.probability)}`,
        ),
      );
      box.hidden = false;
      const room = frame.getBoundingClientRect();
      const wide = box.offsetWidth;
      const x = Math.max(0, Math.min(room.width - wide, at.x + at.width / 2 - room.x - wide / 2));
      const below = at.bottom - room.y + 8;
      const fits = below + box.offsetHeight <= room.height;
      box.style.left = `${x}px`;
      box.style.top = `${fits ? below : Math.max(0, at.y - room.y - box.offsetHeight - 8)}px`;
    },
    hide() {
      box.hidden = true;
    },
  };
}
