// The charts of one coordinate over time, below each other: its curves in each motion, limits, and the time that is shown.

const LEFT = 44; // pixels beside the curves, for numbers
const RIGHT = 6;
const BELOW = 18; // pixels below the curves, for the times
const MAX_STEPS = 5; // of an axis
const ABOVE = 20, APART = 5; // pixels above the curves of a chart, for its title (as in the style), and below them
const TITLE = 13; // pixels from the middle of a title to the curves
const STANCE = "rgb(34 170 102 / 20%)", PALE = 0.4; // the colour of stance phases, and the opacity of pale curves

/** A chart that is drawn again when it shows something else; the line at the time that is shown moves alone. */
class Chart {
    /** ``resized`` is called when it has another size and must be shown again. */
    constructor(resized) {
        this.canvas = element("canvas");
        this.line = element("i");
        this.root = element("div", { className: "chart" }, this.canvas, this.line);
        new ResizeObserver(() => {
            this.key = null;
            resized();
        }).observe(this.canvas);
    }

    /** Draw ``charts()``, if ``key``, which says what they are, has changed; the time of a ``stride`` is in percent. */
    show(key, charts, duration, theme, stride) {
        if (key === this.key) return;
        this.key = key;
        const all = charts();
        this.root.style.height = `calc(${all.charts.length} * 5.8rem + ${BELOW}px)`;
        drawCharts(this.canvas, all, duration, theme, stride);
    }

    point(now, duration) {
        this.line.style.left = `calc(${LEFT}px + ${(now / (duration || 1)).toFixed(4)} * (100% - ${LEFT + RIGHT}px))`;
    }
}

/**
 * Draw charts [{title, low, high, limits, far, curves: [{times, values, color, dashed, pale}]}] below each other, over
 * grey ``gaps``, where no forces are known, and green ``stances`` [[first, last]] (s).
 */
function drawCharts(canvas, { charts, gaps, stances }, duration, theme, stride) {
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2), pen = canvas.getContext("2d");
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    pen.clearRect(0, 0, width, height);
    if (!charts.length || !width) return;
    const left = LEFT * ratio, x = (t) => left + (t / (duration || 1)) * (width - left - RIGHT * ratio);
    const bottom = height - BELOW * ratio, tall = bottom / charts.length;
    const line = (color, wide, points, dashes = []) => {
        pen.strokeStyle = color;
        pen.lineWidth = wide * ratio;
        pen.setLineDash(dashes.map((each) => each * ratio));
        pen.beginPath();
        points.forEach(([a, b], k) => (k && points[k - 1][1] === points[k - 1][1] ? pen.lineTo(a, b) : pen.moveTo(a, b))); // not over NaN
        pen.stroke();
    };
    for (const [spans, color] of [[stances, STANCE], [gaps, theme.grid]]) {
        pen.fillStyle = color;
        for (const [first, last] of spans) pen.fillRect(x(first), 0, x(last) - x(first), bottom);
    }
    pen.font = `${10.5 * ratio}px system-ui, sans-serif`;
    charts.forEach(({ title, low, high, limits, far, curves }, number) => {
        const top = number * tall + ABOVE * ratio, room = tall - (ABOVE + APART) * ratio;
        const y = (value) => top + ((high - value) / (high - low)) * room, level = (value) => [[left, y(value)], [width, y(value)]];
        pen.textBaseline = "middle";
        pen.textAlign = "left";
        pen.fillStyle = theme.ink;
        pen.fillText(title, 0, top - TITLE * ratio);
        pen.fillStyle = theme.faint;
        pen.textAlign = "right";
        pen.fillText(limitsOf(far), width, top - TITLE * ratio);
        for (const { value, text } of ticks(low, high)) {
            line(value === 0 ? theme.rule : theme.grid, 1, level(value));
            if (limits.every((limit) => Math.abs(y(value) - y(limit)) >= 10 * ratio)) pen.fillText(text, left - 5 * ratio, y(value));
        }
        for (const limit of limits) {
            line(theme.alarm, 1, level(limit), [4, 3]);
            pen.fillText(short(limit), left - 5 * ratio, y(limit));
        }
        for (const { times, values, color, dashed, pale } of [...curves].sort((a, b) => (a.dashed || 0) - (b.dashed || 0))) {
            pen.globalAlpha = pale ? PALE : 1;
            line(color, 1.6, Array.from(values, (value, k) => [x(times[k]), y(value)]), dashed ? [3, 2] : []);
            pen.globalAlpha = 1;
        }
    });
    line(theme.rule, 1, [[left, bottom], [width, bottom]]);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    pen.fillStyle = theme.faint;
    const end = stride ? 100 : duration;
    ticks(0, end).forEach(({ value, text }, k, all) => {
        const own = k + 1 < all.length ? text : `${text} ${stride ? "%" : "s"}`, half = pen.measureText(own).width / 2;
        const at = x((value / (end || 1)) * duration);
        line(theme.rule, 1, [[at, bottom], [at, bottom + 3 * ratio]]);
        pen.fillText(own, Math.min(at, width - half), bottom + 5 * ratio);
    });
}

/** The words for limits outside a chart. */
function limitsOf(far) {
    if (!far.length) return "";
    if (far.length === 2 && far[0] === -far[1]) return `limit \u00b1${short(far[1])}`;
    return `limit${far.length > 1 ? "s" : ""} ${far.map((each) => short(each)).join(" and ")}`;
}

/** Round values between two numbers, and their texts; their steps, at most five, are 1, 2 or 5 times a power of ten. */
function ticks(low, high) {
    if (!(high > low)) return [];
    const rough = (high - low) / MAX_STEPS, power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((each) => each * power >= 0.999 * rough);
    const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-6)), plain = step >= 1e-3 && high < 1e5, found = [];
    for (let k = Math.ceil(low / step - 1e-6); k <= high / step + 1e-6; k++) {
        const value = k * step, text = plain ? value.toFixed(k ? digits : 0).replace("-", "\u2212") : short(value, 0);
        found.push({ value, text });
    }
    return found;
}

/** A number in few characters; below ``least`` it is rounding. */
function short(value, least = 1e-9) {
    if (!Number.isFinite(value)) return "";
    const size = Math.abs(value);
    if (size <= least) return "0";
    if (size < 1e-3 || size >= 1e5) return value.toExponential(1).replaceAll("-", "\u2212");
    return String(+value.toFixed(size < 1 ? 3 : size < 10 ? 2 : size < 1000 ? 1 : 0)).replace(/^-0$/, "0").replace("-", "\u2212");
}
