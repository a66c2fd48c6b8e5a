"use strict";
// A page inside another one follows its colours: page.html#dark.
const follow = () => {
  const theme = location.hash.slice(1);
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
};
addEventListener("hashchange", follow);
follow();
for (const svg of document.querySelectorAll("svg[data-yaw]")) {
  const size = Number(svg.dataset.size);
  const turned = Array.from(svg.querySelectorAll("[data-p]"), (element) => ({
    element,
    points: element.dataset.p.split(" ").map((point) => point.split(",").map(Number)),
  }));
  const seen = ([x, y, z]) => {
    const yaw = Number(svg.dataset.yaw), pitch = Number(svg.dataset.pitch);
    const across = x * Math.cos(yaw) - y * Math.sin(yaw);
    const deep = x * Math.sin(yaw) + y * Math.cos(yaw);
    const up = z * Math.cos(pitch) - deep * Math.sin(pitch);
    return [size * across, -size * up];
  };
  const turn = (right, up) => {
    svg.dataset.yaw = Number(svg.dataset.yaw) + right;
    svg.dataset.pitch = Math.max(-1.5, Math.min(1.5, Number(svg.dataset.pitch) + up));
    for (const { element, points } of turned) {
      const at = points.map(seen);
      if (element.tagName === "circle") {
        element.setAttribute("cx", at[0][0]);
        element.setAttribute("cy", at[0][1]);
      } else if (element.tagName === "text") {
        element.setAttribute("x", at[0][0]);
        element.setAttribute("y", at[0][1]);
      } else {
        element.setAttribute("points", at.map((p) => p.join(",")).join(" "));
      }
    }
  };
  svg.addEventListener("pointerdown", (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener("pointermove", (event) => {
    if (svg.hasPointerCapture(event.pointerId)) turn(event.movementX / 90, event.movementY / 90);
  });
  for (const button of svg.parentElement.querySelectorAll("button[data-turn]")) {
    button.addEventListener("click", () => turn(...button.dataset.turn.split(",").map(Number)));
  }
}
