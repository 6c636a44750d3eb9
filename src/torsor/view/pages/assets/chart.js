// A small chart of one drive over time: its force in each motion, its limits, and the time that is shown.

const LEFT = 44; // pixels beside the curves, for numbers
const RIGHT = 6;
const BELOW = 18; // pixels below the curves, for the times
const MAX_STEPS = 5; // of an axis

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

    /** Draw ``curves()``, if ``key``, which says what they are, has changed; the time of a ``stride`` is in percent. */
    show(key, curves, duration, theme, stride) {
        if (key === this.key) return;
        this.key = key;
        drawChart(this.canvas, curves(), duration, theme, stride);
    }

    point(now, duration) {
        this.line.style.left = `calc(${LEFT}px + ${(now / (duration || 1)).toFixed(4)} * (100% - ${LEFT + RIGHT}px))`;
    }
}

function drawChart(canvas, curves, duration, theme, stride) {
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2), pen = canvas.getContext("2d");
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    pen.clearRect(0, 0, width, height);
    if (!curves.length || !width) return;
    const larger = (most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most);
    const peak = curves.reduce((most, each) => each.values.reduce(larger, most), 0), top = peak > 1e-9 ? peak : 1;
    const { limit } = curves[0];
    const shown = Number.isFinite(limit) && limit < 1.6 * top ? Math.max(1.08 * limit, 1.1 * top) : 1.15 * top;
    const left = LEFT * ratio, x = (t) => left + (t / (duration || 1)) * (width - left - RIGHT * ratio);
    const middle = (height - BELOW * ratio) / 2, y = (value) => middle - (value / shown) * (middle - 6 * ratio);
    const line = (color, wide, points, dashes = []) => {
        pen.strokeStyle = color;
        pen.lineWidth = wide * ratio;
        pen.setLineDash(dashes.map((each) => each * ratio));
        pen.beginPath();
        points.forEach(([a, b], k) => (k && points[k - 1][1] === points[k - 1][1] ? pen.lineTo(a, b) : pen.moveTo(a, b))); // not over NaN
        pen.stroke();
    };
    pen.fillStyle = theme.grid; // where no forces are known
    for (const [first, last] of curves.flatMap((each) => each.gaps || [])) pen.fillRect(x(first), 0, x(last) - x(first), 2 * middle);
    pen.fillStyle = theme.faint;
    pen.font = `${10.5 * ratio}px system-ui, sans-serif`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const { value, text } of ticks(-shown, shown)) {
        line(theme.grid, 1, [[left, y(value)], [width, y(value)]]);
        pen.fillText(text, left - 5 * ratio, y(value));
    }
    line(theme.rule, 1, [[left, y(0)], [width, y(0)]]);
    line(theme.rule, 1, [[left, 2 * middle], [width, 2 * middle]]);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const end = stride ? 100 : duration;
    ticks(0, end).forEach(({ value, text }, k, all) => {
        const own = k + 1 < all.length ? text : `${text} ${stride ? "%" : "s"}`, half = pen.measureText(own).width / 2;
        const at = x((value / (end || 1)) * duration);
        line(theme.rule, 1, [[at, 2 * middle], [at, 2 * middle + 3 * ratio]]);
        pen.fillText(own, Math.min(at, width - half), 2 * middle + 5 * ratio);
    });
    if (Number.isFinite(limit)) {
        for (const sign of [-1, 1]) line(theme.alarm, 1, [[left, y(sign * limit)], [width, y(sign * limit)]], [4, 3]);
    }
    for (const { times, values: own, color, residuals } of curves) {
        if (residuals) line(theme.faint, 1, own.map((_, k) => [x(times[k] - times[0]), y(residuals[k])]));
        line(color, 1.6, own.map((value, k) => [x(times[k] - times[0]), y(value)]));
    }
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
