"use strict";
// Reads the page again and exchanges the parts that are marked; only ever text that the same server has escaped.
(() => {
  const seconds = Number(document.body.dataset.seconds);
  const status = document.querySelector("[data-status]");
  if (!seconds || !status) return;
  let paused = false;
  const words = document.createElement("span");
  const button = document.createElement("button");
  button.type = "button";
  const tell = (text) => { if (words.textContent !== text) words.textContent = text; };
  const show = () => {
    button.textContent = paused ? "Go on updating" : "Pause updates";
    tell(paused ? "Updates are paused" : `Updated every ${seconds} seconds`);
  };
  button.addEventListener("click", () => { paused = !paused; show(); });
  status.append(words, button);
  show();
  const exchange = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const other = fresh.getElementById(part.id);
      if (!other || other.innerHTML === part.innerHTML) continue;
      const held = part.contains(document.activeElement) ? document.activeElement : null;
      const target = held && held.getAttribute("href");
      const label = held && held.getAttribute("aria-label");
      const scrolled = [...part.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
      part.replaceChildren(...document.importNode(other, true).childNodes);
      part.querySelectorAll(".scroll").forEach((box, place) => { box.scrollLeft = scrolled[place] || 0; });
      const again = [...part.querySelectorAll("a, [tabindex]")].find(
        (one) => (target && one.getAttribute("href") === target) || (label && one.getAttribute("aria-label") === label));
      if (again) again.focus({ preventScroll: true });
    }
  };
  const look = async () => {
    if (!paused && !document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store", redirect: "error" });
        if (!answer.ok) throw new Error(String(answer.status));
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        if (!paused) { exchange(fresh); show(); }
      } catch {
        tell("The server does not answer: what is shown may be out of date");
      }
    }
    setTimeout(look, seconds * 1000);
  };
  setTimeout(look, seconds * 1000);
})();
