"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg";
  const data = JSON.parse(document.getElementById("data").textContent);
  const columns = data.columns, patterns = data.patterns;
  const view = document.getElementById("view"), select = document.getElementById("column");
  const picks = document.getElementById("picks"), picture = document.getElementById("picture");
  const said = document.getElementById("said"), numbers = document.getElementById("numbers");
  const HEIGHT = 280, LEFT = 8, BOTTOM = 42, TOP = 12;

  // Series 0 is what was observed, series i + 1 is group i: a pattern, or a third of a scale.
  const shown = [true].concat(patterns.map(function (_, i) { return i < data.ticked; }));

  // ---- words

  function number(value) {
    if (value === null || value === undefined || !isFinite(value)) return "unknown";
    const size = Math.abs(value);
    let text;
    if (size >= 1e9 || (size > 0 && size < 1e-3)) text = value.toPrecision(3);
    else if (size >= 1000) text = String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ",");
    else if (size >= 100) text = String(Math.round(value * 10) / 10);
    else text = String(Number(value.toPrecision(3)));
    return text.replace("-", "\u2212");
  }

  function percent(share) {
    if (share === null || share === undefined) return "unknown";
    const value = 100 * share;
    let text;
    if (value === 0 || value === 100) text = String(value);
    else if (value < 0.1) text = "under 0.1";
    else if (value < 9.95) text = String(Math.round(10 * value) / 10);
    else if (value > 99.5) text = "over 99";
    else text = String(Math.round(value));
    return text + "\u00a0%";
  }

  // A value of a column: days since 1970 are a date.
  function worded(column, value) {
    if (!column.dates || value === null || Math.abs(value) > 1e8) return number(value);
    return new Date(Math.round(value * 86400000)).toISOString().split("T")[0];
  }

  function clipped(text, most) {
    const signs = Array.from(text);
    return signs.length <= most ? text : signs.slice(0, Math.max(most - 1, 1)).join("") + "\u2026";
  }

  function label(i) {
    return i === 0 ? "observed" : patterns[i - 1].name;
  }

  // ---- elements

  function element(tag, text, attributes) {
    const made = document.createElement(tag);
    if (text !== null && text !== undefined) made.textContent = text;
    for (const pair of attributes || []) made.setAttribute(pair[0], pair[1]);
    return made;
  }

  function drawn(parent, tag, attributes, text) {
    const made = document.createElementNS(SVG, tag);
    for (const pair of attributes) made.setAttribute(pair[0], pair[1]);
    if (text !== undefined) made.textContent = text;
    parent.appendChild(made);
    return made;
  }

  function series(i) {
    return "s" + ((i - 1) % 7);
  }

  function marker(parent, i, x, y) {
    const shape = (i - 1) % 4, style = ["class", "solid " + series(i)];
    if (shape === 0) drawn(parent, "circle", [["cx", x], ["cy", y], ["r", 4.5], style]);
    else if (shape === 1) drawn(parent, "rect", [["x", x - 4], ["y", y - 4], ["width", 8], ["height", 8], style]);
    else if (shape === 2) drawn(parent, "path", [["d", "M" + x + " " + (y - 5.5) + "l5.5 10h-11z"], style]);
    else drawn(parent, "path", [["d", "M" + x + " " + (y - 6) + "l6 6l-6 6l-6 -6z"], style]);
  }

  function sample(i) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 34 14");
    svg.setAttribute("aria-hidden", "true");
    if (i === 0) drawn(svg, "rect", [["width", 34], ["height", 14], ["class", "observed"]]);
    else {
      drawn(svg, "path", [["d", "M0 7H34"], ["class", "line " + series(i) + " d" + ((i - 1) % 4)]]);
      marker(svg, i, 17, 7);
    }
    return svg;
  }

  function active() {
    const list = [];
    for (let i = 0; i < shown.length; i += 1) if (shown[i]) list.push(i);
    return list;
  }

  // ---- pictures

  function canvas(width, height, name) {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    svg.setAttribute("width", width);
    svg.setAttribute("height", height);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", "Distribution of " + name);
    return svg;
  }

  function place(column, r) {
    return column.at ? column.at[r] : column.first + r * column.step;
  }

  function value(column, at) {
    return column.log ? Math.pow(10, at) : at;
  }

  function largest(lists) {
    let top = 0;
    for (const list of lists) for (const value of list) if (value > top) top = value;
    return top || 1;
  }

  function drawLevels(column, width) {
    const list = active(), thick = 13, gap = 30;
    const block = gap + list.length * thick;
    const svg = canvas(width, 12 + column.levels.length * block, column.name);
    const top = largest(list.map(function (i) { return column.series[i]; }));
    const room = Math.max(width - 92, 40), most = Math.max(Math.floor(width / 8), 8);
    column.levels.forEach(function (level, r) {
      const y = 8 + r * block;
      const text = drawn(svg, "text", [["x", 0], ["y", y + 12]], clipped(level, most));
      drawn(text, "title", [], level);
      list.forEach(function (i, k) {
        const share = column.series[i][r], at = y + 18 + k * thick;
        const length = share === null ? 0 : Math.max(room * share / top, 0.5);
        const style = i === 0 ? "observed" : "solid " + series(i);
        drawn(svg, "rect", [["x", 0], ["y", at], ["width", length], ["height", thick - 3], ["class", style]]);
        if (i > 0) marker(svg, i, length, at + (thick - 3) / 2);
        drawn(svg, "text", [["x", length + 10], ["y", at + thick - 3], ["class", "soft"]], percent(share));
      });
    });
    return svg;
  }

  function ticks(low, high, most) {
    const raw = (high - low) / Math.max(most, 1), power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].map(function (m) { return m * power; }).find(function (s) { return s >= raw; });
    const list = [];
    for (let t = Math.ceil(low / step); t * step <= high * (1 + 1e-12) && list.length < 50; t += 1) list.push(t * step);
    return list;
  }

  function logTicks(low, high, most) {
    const list = [];
    const stride = Math.max(1, Math.ceil((high - low) / Math.max(most, 1)));
    for (let t = Math.ceil(low / stride) * stride; t <= high; t += stride) {
      list.push(t);
      if (stride === 1 && 3 * (high - low) <= most) list.push(t + Math.log10(2), t + Math.log10(5));
    }
    return list.filter(function (t) { return t <= high; });
  }

  function axis(svg, column, low, high, scale, width) {
    const y = HEIGHT - BOTTOM, most = Math.floor(width / 65);
    drawn(svg, "path", [["d", "M" + LEFT + " " + y + "H" + (width - LEFT)], ["class", "axis"], ["fill", "none"]]);
    for (const t of column.log ? logTicks(low, high, most) : ticks(low, high, most)) {
      const x = scale(t), anchor = x < 25 ? "start" : x > width - 25 ? "end" : "middle";
      drawn(svg, "path", [["d", "M" + x + " " + y + "v5"], ["class", "axis"]]);
      drawn(svg, "text", [["x", x], ["y", y + 20], ["text-anchor", anchor], ["class", "soft"]], worded(column, value(column, t)));
    }
  }

  function drawNumbers(column, width) {
    const list = active(), svg = canvas(width, column.n ? HEIGHT : 40, column.name);
    if (!column.n) {
      drawn(svg, "text", [["x", 0], ["y", 24]], "Nothing above zero to draw.");
      return svg;
    }
    const half = column.type === "counts" ? 0.5 : 0;
    const low = place(column, 0) - half, last = place(column, column.n - 1) + half;
    const high = last > low ? last : low + 1;
    const scale = function (x) { return LEFT + (width - 2 * LEFT) * (x - low) / (high - low); };
    const floor = HEIGHT - BOTTOM, isCount = column.type === "counts";
    const heights = list.map(function (i) { return i === 0 && !isCount ? column.bins : column.series[i]; });
    const top = largest(heights);
    const lift = function (h) { return floor - (floor - TOP) * (h || 0) / top; };
    if (shown[0] && !isCount) {
      column.bins.forEach(function (h, b) {
        const left = scale(Math.max(column.edges[b], low)), right = scale(Math.min(column.edges[b + 1], high));
        const box = [["x", left], ["y", lift(h)], ["width", Math.max(right - left - 0.5, 0.5)], ["height", floor - lift(h)]];
        drawn(svg, "rect", box.concat([["class", "observed"]]));
      });
    }
    if (shown[0] && isCount) {
      const wide = Math.max(0.8 * (scale(low + 1) - scale(low)), 1);
      column.series[0].forEach(function (h, r) {
        const x = scale(place(column, r)) - wide / 2;
        drawn(svg, "rect", [["x", x], ["y", lift(h)], ["width", wide], ["height", floor - lift(h)], ["class", "observed"]]);
      });
    }
    const many = column.n > 60;
    list.forEach(function (i) {
      if (i === 0) return;
      const heights = column.series[i];
      const line = heights.map(function (h, r) {
        return (r ? "L" : "M") + scale(place(column, r)).toFixed(1) + " " + lift(h).toFixed(1);
      });
      drawn(svg, "path", [["d", line.join("") || "M0 0"], ["class", "line " + series(i) + " d" + ((i - 1) % 4)]]);
      if (isCount && !many) heights.forEach(function (h, r) { marker(svg, i, scale(place(column, r)), lift(h)); });
      else if (heights.length) {
        const peak = heights.indexOf(Math.max.apply(null, heights));
        marker(svg, i, scale(place(column, peak)), lift(heights[peak]));
      }
    });
    axis(svg, column, low, high, scale, width);
    const name = clipped(column.name, Math.max(Math.floor(width / 9) - (column.log ? 20 : 0), 8)) + (column.log ? " (logarithmic axis)" : "");
    drawn(svg, "text", [["x", width / 2], ["y", HEIGHT - 4], ["text-anchor", "middle"]], name);
    return svg;
  }

  // ---- the same in words and numbers

  function exactly(atom) {
    return "exactly " + (atom.value === 0 ? "zero" : number(atom.value));
  }

  function sentence(column) {
    const list = active();
    if (!list.length) return "Nothing is ticked.";
    const parts = list.map(function (i) {
      if (column.type !== "levels") {
        const exact = column.atoms.map(function (atom) { return ", " + exactly(atom) + " in " + percent(atom.shares[i]); });
        return label(i) + ": " + worded(column, column.medians[i]) + exact.join("");
      }
      const shares = column.series[i];
      const best = shares.indexOf(Math.max.apply(null, shares));
      return label(i) + ": " + clipped(column.levels[best], 40) + " (" + percent(shares[best]) + ")";
    });
    const start = column.type === "levels" ? "most probable level " : "median ";
    let text = clipped(column.name, 80) + " (" + column.kind + "), " + start + "\u2013 " + parts.join("; ") + ".";
    if (column.type !== "levels" && column.atoms.length) {
      const zero = column.atoms.length === 1 && column.atoms[0].value === 0;
      text += zero ? " The picture shows the values above zero." : " The picture shows the other values.";
    }
    return text;
  }

  function tabulate(column) {
    const list = active(), head = element("tr");
    numbers.replaceChildren();
    head.appendChild(element("th", column.type === "levels" ? "level" : "value", [["scope", "col"]]));
    for (const i of list) head.appendChild(element("th", label(i), [["scope", "col"], ["class", "number"]]));
    const body = element("tbody"), top = element("thead");
    top.appendChild(head);
    const row = function (name, values) {
      const made = element("tr");
      made.appendChild(element("th", name, [["scope", "row"]]));
      for (const value of values) made.appendChild(element("td", value, [["class", "number"]]));
      body.appendChild(made);
    };
    if (column.type === "levels") {
      column.levels.forEach(function (level, r) {
        row(clipped(level, 100), list.map(function (i) { return percent(column.series[i][r]); }));
      });
    } else {
      row("median", list.map(function (i) { return worded(column, column.medians[i]); }));
      for (const atom of column.atoms) row(exactly(atom), list.map(function (i) { return percent(atom.shares[i]); }));
      const stride = Math.max(1, Math.floor(column.n / 25));
      for (let r = 0; r < column.n; r += stride) {
        const at = place(column, r);
        row(worded(column, value(column, at)), list.map(function (i) {
          if (column.type === "counts") return percent(column.series[i][r]);
          return number(i === 0 ? binned(column, at) : column.series[i][r]);
        }));
      }
    }
    const per = column.log ? "Densities, per factor of ten" : "Densities";
    const what = column.type === "curve" ? per : "Shares of rows";
    numbers.append(element("caption", what), top, body);
  }

  function binned(column, at) {
    for (let b = 0; b < column.bins.length; b += 1) {
      if (at >= column.edges[b] && at <= column.edges[b + 1]) return column.bins[b];
    }
    return 0;
  }

  function draw() {
    const column = columns[select.selectedIndex];
    if (!column) return;
    const width = Math.max(picture.clientWidth - 24, 200);
    picture.replaceChildren(column.type === "levels" ? drawLevels(column, width) : drawNumbers(column, width));
    said.textContent = sentence(column);
    tabulate(column);
  }

  columns.forEach(function (column, i) {
    select.appendChild(element("option", clipped(column.name, 50) + " \u2013 " + column.kind, [["value", i]]));
  });
  shown.forEach(function (on, i) {
    const pick = element("label", null, [["class", "pick"]]), box = element("input", null, [["type", "checkbox"]]);
    box.checked = on;
    box.addEventListener("change", function () { shown[i] = box.checked; draw(); });
    const words = element("span", i === 0 ? "observed" : patterns[i - 1].name);
    const more = i === 0 ? "all rows, as they are" : percent(patterns[i - 1].share) + " of rows; " + clipped(patterns[i - 1].meaning, 90);
    words.appendChild(element("small", more));
    pick.append(box, sample(i), words);
    picks.appendChild(pick);
  });
  select.selectedIndex = data.start;
  view.hidden = false;
  select.addEventListener("change", draw);
  window.addEventListener("resize", draw);
  window.addEventListener("beforeprint", function () {
    for (const one of document.querySelectorAll("details:not([open])")) { one.open = true; one.dataset.shut = "yes"; }
  });
  window.addEventListener("afterprint", function () {
    for (const one of document.querySelectorAll("details[data-shut]")) { one.open = false; delete one.dataset.shut; }
  });
  draw();
})();
