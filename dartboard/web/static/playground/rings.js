/**
 * The map's scale and its rings.
 */

import { s } from "../dom.js";

const EDGE = 30;

/** From the service's unit disc to the drawing. */
export function scaleOf(reading, middle) {
  const reach = middle - EDGE;
  const far = Math.max(...reading.candidates.map((one) => one.distance));
  if (far < 1e-6)
    return { at: () => [middle, middle], far: 0.1, radius: (distance) => 10 * distance * reach };
  const unit = reach / (far * reading.data.layout.radius_of_one);
  return {
    at: (one) => [middle + one.x * unit, middle - one.y * unit],
    far,
    radius: (distance) => (distance / far) * reach,
  };
}

/** Circles at round distances, with labels where no dot lies. */
export function rings(scale, reading, middle) {
  const gap = niceGap(scale.far / 4);
  const radii = [];
  for (let at = 1; at * gap <= scale.far * 1.09; at++) radii.push([at * gap, scale.radius(at * gap)]);
  const [dx, dy] = freeWay(radii, reading.candidates.map(scale.at), middle);
  const circles = radii.map(([, r], at) =>
    s("circle", { cx: middle, cy: middle, r: r.toFixed(1), class: at % 2 ? "ring" : "ring odd" }),
  );
  const labels = radii.map(([distance, r]) => {
    const place = { x: (middle + dx * r).toFixed(1), y: (middle + dy * r).toFixed(1), dy: "0.36em" };
    const text = String(Number(distance.toPrecision(3)));
    return s("text", { ...place, class: "ring-label", "text-anchor": "middle" }, text);
  });
  return s("g", { class: "rings", "aria-hidden": "true" }, ...circles.reverse(), ...labels);
}

/** The direction in which labels lie farthest from any dot. */
function freeWay(radii, dots, middle) {
  let best = [0, -1];
  let most = -1;
  for (let turn = 0; turn < 48; turn++) {
    const [dx, dy] = [Math.sin((turn * Math.PI) / 24), -Math.cos((turn * Math.PI) / 24)];
    const gaps = radii.map(([, r]) =>
      Math.min(60, ...dots.map(([x, y]) => Math.hypot(middle + dx * r - x, middle + dy * r - y))),
    );
    const room = Math.min(...gaps) + 0.1 * gaps.reduce((sum, one) => sum + one, 0);
    if (room > most) [best, most] = [[dx, dy], room];
  }
  return best;
}

function niceGap(about) {
  const power = 10 ** Math.floor(Math.log10(about));
  return [1, 2, 5, 10]
    .map((step) => step * power)
    .reduce((best, step) =>
      Math.abs(Math.log(step / about)) < Math.abs(Math.log(best / about)) ? step : best,
    );
}
