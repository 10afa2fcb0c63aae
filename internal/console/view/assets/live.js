// SPDX-License-Identifier: Apache-2.0

// The script reads the page anew every few seconds and changes what differs, so that focus, scroll and
// selection stay. A page without the script is the same, and is read anew by hand.
(() => {
  "use strict";

  const period = 5000;
  const main = document.getElementById("main");
  const line = document.getElementById("live");
  const words = line.querySelector("span");
  const button = line.querySelector("button");
  let tag = "";
  let paused = "paused" in line.dataset; // the page takes many requests

  // say tells the state of the updates, once for each change: a screen reader reads it out.
  const say = (text, isOld) => {
    if (words.textContent !== text) words.textContent = text;
    document.body.classList.toggle("old", isOld);
  };

  // localize tells times in the zone of the reader. The title has the time in UTC.
  const localize = (root) => {
    for (const time of root.querySelectorAll("time")) {
      if (time.textContent === time.dateTime) time.textContent = new Date(time.dateTime).toLocaleString();
    }
  };

  // readAt shows when the console has answered last.
  const readAt = (stamp) => {
    const time = main.querySelector(".read time");
    time.textContent = time.dateTime = time.title = stamp;
    localize(main);
  };

  // isChanged says whether the reader has changed a field.
  const isChanged = (field) => {
    if (field.options) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected));
    return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  };

  const fields = "input, select";

  // isInUse says whether the reader is at a form, or has changed a field of it.
  const isInUse = (form) => form.contains(document.activeElement) || [...form.querySelectorAll(fields)].some(isChanged);

  // find returns the node that becomes a new one: the old node at its place, or a later one with its id.
  const find = (old, node) => {
    const isAlike = (other) => other.nodeType === node.nodeType && other.nodeName === node.nodeName && (other.id ?? "") === (node.id ?? "");
    for (let other = old; other; other = other.nextSibling) {
      if (isAlike(other)) return other;
      if (!node.id) return null;
    }
    return null;
  };

  // morph makes an element like another one, and keeps each node that is alike. In a form that is in use the
  // fields stay as they are: the request is about what the reader has seen.
  const morph = (from, to, inUse = false) => {
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name); // the reader opens a table
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    let old = from.firstChild;
    const removeUntil = (end) => {
      while (old !== end) {
        const next = old.nextSibling;
        old.remove();
        old = next;
      }
    };
    for (const node of to.childNodes) {
      const same = find(old, node);
      if (!same) {
        from.insertBefore(document.importNode(node, true), old);
        continue;
      }
      removeUntil(same);
      old = same.nextSibling;
      if (node.nodeType !== Node.ELEMENT_NODE) {
        if (same.data !== node.data) same.data = node.data;
      } else if (!inUse || !node.matches(fields)) {
        morph(same, node, inUse || (node.nodeName === "FORM" && isInUse(same)));
      }
    }
    removeUntil(null);
  };

  const read = async () => {
    const answer = await fetch(location.href, { headers: tag ? { "If-None-Match": tag } : {}, redirect: "error" });
    const stamp = new Date(answer.headers.get("Date")).toISOString().replace(/\.\d+Z$/, "Z");
    if (answer.status === 304) {
      readAt(stamp);
      return;
    }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!answer.ok) throw new Error(`HTTP status ${answer.status}`);
    tag = answer.headers.get("ETag") ?? "";
    document.title = next.title;
    const content = next.getElementById("main");
    localize(content);
    morph(main, content);
  };

  const update = async () => {
    if (!paused && !document.hidden) {
      try {
        await read();
        say("The page is read anew every 5 seconds.", false);
      } catch (error) {
        say(`The page is old: the console does not answer (${error.message}).`, true);
      }
    }
    setTimeout(update, period);
  };

  const show = () => {
    button.textContent = paused ? "Go on" : "Pause";
    if (paused) say("Updates are paused.", false);
  };

  button.addEventListener("click", () => {
    paused = !paused;
    show();
  });
  show();
  localize(main);
  line.hidden = false;
  if (main.dataset.still === undefined) {
    setTimeout(update, period);
  } else {
    button.hidden = true;
    say("Updates are off on this page.", false);
  }
})();
