"use strict";
// The episode browser.  All that comes from the run is put into the page as text, never as markup.
(() => {
  const byId = (id) => document.getElementById(id);
  const PAGE = 60;

  const make = (kind, options = {}, ...children) => {
    const element = document.createElement(kind);
    for (const [name, value] of Object.entries(options)) {
      if (name === "class") element.className = value;
      else if (name === "text") element.textContent = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };

  const SHAPES = [
    ["circle", { r: 5 }],
    ["rect", { x: -5, y: -5, width: 10, height: 10 }],
    ["path", { d: "M0-6 6 5H-6Z" }],
    ["path", { d: "M0-7 7 0 0 7-7 0Z" }],
    ["path", { d: "M0 6 6-5H-6Z" }],
    ["path", { d: "M-5-2-2-5 5 2 2 5Z" }],
  ];
  const svg = (kind, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", kind);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const mark = (style) => {
    const [kind, attributes] = SHAPES[style % SHAPES.length];
    const element = svg("svg", { class: `mk c${style % SHAPES.length}`, viewBox: "-8 -8 16 16", "aria-hidden": "true" });
    element.append(svg(kind, attributes));
    return element;
  };

  byId("save").addEventListener("click", () => {
    const blob = new Blob([byId("numbers").textContent], { type: "application/json" });
    const link = make("a", { href: URL.createObjectURL(blob), download: "report.json" });
    link.click();
    URL.revokeObjectURL(link.href);
  });

  const unpack = async () => {
    const packed = Uint8Array.from(atob(byId("packed").textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  const start = (data) => {
    const { strings, reachers, solvers, tasks, episodes } = data;
    const names = [...new Set([...reachers, ...solvers])];
    const styleOf = (name) => names.indexOf(name);
    const arrived = (episode) => episode.a !== undefined;
    const words = (label) => label.replaceAll("_", " ");
    const winners = (episode) => (episode.e || []).filter((end) => end.won).map((end) => solvers[end.r]);

    // Outcomes that can be filtered by, with a test each.
    const outcomes = [["any outcome", () => true], ["arrived", arrived]];
    if (solvers.length > 1) {
      outcomes.push(["won by every solver", (e) => arrived(e) && winners(e).length === solvers.length]);
      for (const solver of solvers) {
        outcomes.push([`won by ${solver} only`, (e) => winners(e).length === 1 && winners(e)[0] === solver]);
      }
    } else outcomes.push([`won by ${solvers[0]}`, (e) => winners(e).length === 1]);
    outcomes.push(["arrived, won by none", (e) => arrived(e) && winners(e).length === 0]);
    outcomes.push(["did not arrive", (e) => !arrived(e)]);
    for (const label of [...new Set(episodes.filter((e) => e.f).map((e) => e.f))].sort()) {
      outcomes.push([`did not arrive: ${words(label)}`, (e) => e.f === label]);
    }

    const fill = (select, entries) => {
      select.replaceChildren(...entries.map((text, value) => make("option", { value, text })));
    };
    const types = [...new Set(tasks.map((task) => task[1]))].sort();
    fill(byId("f-type"), ["all types", ...types]);
    fill(byId("f-reacher"), ["all reachers", ...reachers]);
    fill(byId("f-outcome"), outcomes.map(([name, test]) => `${name} (${episodes.filter(test).length})`));

    let shown = [];
    let limit = PAGE;
    let current = -1;

    const select = () => {
      const type = types[byId("f-type").value - 1];
      const reacher = byId("f-reacher").value - 1;
      const test = outcomes[byId("f-outcome").value][1];
      const part = byId("f-task").value.trim().toLowerCase();
      shown = [];
      episodes.forEach((episode, number) => {
        const task = tasks[episode.t];
        if (type !== undefined && task[1] !== type) return;
        if (reacher >= 0 && episode.w !== reacher) return;
        if (part && !task[0].toLowerCase().includes(part)) return;
        if (test(episode)) shown.push(number);
      });
      limit = PAGE;
      list();
    };

    const filter = () => {
      select();
      follow();
    };

    // The pane shows an episode of the list, and its arrows stay in the list.
    const follow = () => {
      if (shown.includes(current)) byId("episode").querySelector(".step-nav").replaceWith(arrows(current));
      else if (shown.length) show(shown.find((number) => arrived(episodes[number])) ?? shown[0], false);
      else {
        current = -1;
        byId("episode").replaceChildren(make("p", { class: "note", text: "No trajectory matches the filters." }));
      }
    };

    const result = (episode) => {
      if (!arrived(episode)) return make("span", { class: "res bad", text: words(episode.f) });
      const cell = make("span", { class: "res" });
      for (const end of episode.e) {
        const solver = solvers[end.r];
        const told = `${solver} ${end.won ? "won" : "did not win"}`;
        const line = make("span", { class: end.won ? "good" : "bad", title: told, text: end.won ? " ✓" : " ✗" });
        cell.append(mark(styleOf(solver)), line, " ");
      }
      return cell;
    };

    const list = () => {
      byId("f-count").value = `${shown.length} of ${episodes.length} trajectories`;
      const rows = shown.slice(0, limit).map((number) => {
        const episode = episodes[number];
        const [name, type] = tasks[episode.t];
        const row = make("button", { type: "button", class: "ep", role: "option", "data-episode": number, "aria-selected": number === current });
        const sub = make("span", { class: "sub" });
        sub.append(mark(styleOf(reachers[episode.w])), ` ${reachers[episode.w]} · seed slot ${episode.s}`);
        const steps = make("span", { class: "res sub", text: arrived(episode) ? `arrives at ${episode.a}` : `${episode.x.length} actions` });
        row.append(make("span", { class: "name", text: name, title: type }), result(episode), sub, steps);
        row.addEventListener("click", () => show(number, true));
        return row;
      });
      if (shown.length > limit) {
        const more = make("button", { type: "button", id: "more", text: `Show ${Math.min(PAGE, shown.length - limit)} more` });
        more.addEventListener("click", () => { limit += PAGE; list(); });
        rows.push(more);
      }
      if (!shown.length) rows.push(make("p", { class: "note ep", text: "No trajectory matches." }));
      byId("list").replaceChildren(...rows);
    };

    const observation = (number) => make("div", { class: "obs", text: strings[number] });
    const away = (distance) => (distance < 0 ? "" : distance === 0 ? "won" : `${distance} from success`);

    const stepRow = (step, number) => {
      const [action, seen, said, status, flags, distance, strange] = step;
      const meta = [away(distance), strings[status] === "parsed" ? "" : words(strings[status]), strange ? "not admissible" : "", strings[flags]];
      const head = make("div", { class: "act", text: action < 0 ? "(no action)" : strings[action] });
      const told = meta.filter(Boolean).join(" · ");
      if (told) head.append(make("span", { class: "meta", text: `  ${told}` }));
      const body = make("div", {}, head, observation(seen));
      if (said >= 0) body.append(make("details", {}, make("summary", { text: "what it said" }), make("pre", { text: strings[said] })));
      return make("div", { class: "step" }, make("div", { class: "n", text: number }), body);
    };

    const panel = (title, ...children) => make("div", { class: "panel" }, make("h4", {}, ...[title].flat()), ...children);
    const chip = (text, kind = "") => make("span", { class: `chip ${kind}`, text });

    const certificate = (episode) => {
      const found = episode.c;
      const levels = found.tried.map((count, k) => `${count.toLocaleString("en")} of length ${k + 1}`).join(", ");
      const facts = make("dl", {},
        make("dt", { text: "distance" }), make("dd", { text: `exactly ${found.distance} actions from success` }),
        make("dt", { text: "tried" }), make("dd", { text: `action sequences: ${levels}` }),
        make("dt", { text: "bridges" }), make("dd", {}, ...found.bridges.flatMap((k, n) => [n ? ", " : "", make("code", { text: strings[k] })])),
        make("dt", { text: "a shortest path" }), make("dd", {}, ...found.path.flatMap((k, n) => [n ? " → " : "", make("code", { text: strings[k] })])));
      const offered = make("details", {}, make("summary", { text: `${episode.m.length} admissible actions` }),
        make("pre", { text: episode.m.map((k) => strings[k]).join("\n") }));
      return panel("Certificate of the arrival state", facts, offered);
    };

    const continuation = (episode, end) => {
      const solver = solvers[end.r];
      const head = [mark(styleOf(solver)), `solver ${solver}`, chip(end.won ? "won" : "did not win", end.won ? "good" : "bad")];
      if (end.b !== undefined) head.push(chip(end.b ? "first action is a bridge" : "no bridge"));
      const steps = end.x.map((step, n) => stepRow(step, episode.a + n + 1));
      const box = panel(head, ...steps);
      if (end.k) box.append(make("p", { class: "note", text: `clone checked: ${end.k[0]} records equal, input ${end.k[2]}` }));
      return box;
    };

    const arrows = (number) => {
      const move = make("div", { class: "step-nav" });
      for (const [text, by, told] of [["←", -1, "previous"], ["→", 1, "next"]]) {
        const button = make("button", { type: "button", text, title: `${told} in the list`, "aria-label": told });
        const next = shown[shown.indexOf(number) + by];
        if (next === undefined) button.disabled = true;
        button.addEventListener("click", () => show(next, true));
        move.append(button);
      }
      return move;
    };

    const show = (number, chosen) => {
      current = number;
      const place = shown.indexOf(number);
      if (place >= limit) {
        limit = PAGE * Math.ceil((place + 1) / PAGE);
        list();
      }
      const episode = episodes[number];
      const [name, type, id] = tasks[episode.t];
      const reacher = reachers[episode.w];
      const parts = [];
      parts.push(arrows(number), make("h3", { text: name }));
      const who = chip("");
      who.append(mark(styleOf(reacher)), `reacher ${reacher}`);
      const end = arrived(episode) ? chip(`arrived after ${episode.a} actions`, "good") : chip(`did not arrive: ${words(episode.f)}`, "bad");
      const chips = [chip(type), chip(`seed slot ${episode.s}`), who, end, chip(`task ${id}`)];
      parts.push(make("div", { class: "chips" }, ...chips));
      parts.push(panel("Start", observation(episode.r)));
      if (episode.x.length) {
        const rows = episode.x.map((step, n) => stepRow(step, n + 1));
        parts.push(panel([mark(styleOf(reacher)), `${reacher} reaches`], make("div", { class: "scroll" }, ...rows)));
      }
      if (arrived(episode)) {
        parts.push(certificate(episode));
        const inputs = new Set(episode.e.filter((e) => e.k).map((e) => e.k[2]));
        if (episode.e.length > 1 && inputs.size === 1) {
          parts.push(make("p", { class: "note", text: "Every solver was shown the same input." }));
        }
        parts.push(make("div", { class: "solvers" }, ...episode.e.map((one) => continuation(episode, one))));
      } else {
        parts.push(make("p", { class: "note", text: "The reacher never stood on the frontier, so no solver goes on: every endpoint of this trajectory is a failure." }));
      }
      byId("episode").replaceChildren(...parts);
      for (const row of byId("list").querySelectorAll(".ep[data-episode]")) {
        row.setAttribute("aria-selected", row.dataset.episode === String(number));
      }
      // An address that names an episode names the one in the pane.
      if (chosen || addressed() !== undefined) history.replaceState(null, "", `#episode-${number}`);
      if (chosen) {
        if (window.matchMedia("(max-width: 860px)").matches) byId("episode").scrollIntoView({ block: "start" });
      }
    };

    for (const id of ["f-type", "f-reacher", "f-outcome"]) byId(id).addEventListener("change", filter);
    byId("f-task").addEventListener("input", filter);
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    const addressed = () => {
      const named = /^#episode-(\d+)$/.exec(location.hash);
      return named && Number(named[1]) < episodes.length ? Number(named[1]) : undefined;
    };
    const visit = () => {
      const named = addressed();
      if (named === undefined) return;
      if (!shown.includes(named)) {
        for (const id of ["f-type", "f-reacher", "f-outcome"]) byId(id).selectedIndex = 0;
        byId("f-task").value = "";
        select();
      }
      show(named, false);
      byId("episodes").scrollIntoView();
    };
    window.addEventListener("hashchange", visit);
    select();
    if (addressed() === undefined) follow();
    else visit();
    document.documentElement.dataset.ready = "yes";
  };

  const fail = (error) => {
    byId("list").replaceChildren(make("p", { class: "warn ep", text: `The episodes cannot be unpacked here: ${error.message}` }));
  };
  if (typeof DecompressionStream === "undefined") fail(new Error("this browser has no DecompressionStream"));
  else unpack().then(start).catch(fail);
})();
