// A small chart of one drive over time: its force in each motion, its limits, and the time that is shown.

const LEFT = 44; // pixels beside the curves, for numbers
const RIGHT = 6;

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

    /** Draw ``curves()``, if ``key``, which says what they are, has changed. */
    show(key, curves, duration, theme) {
        if (key === this.key) return;
        this.key = key;
        drawChart(this.canvas, curves(), duration, theme);
    }

    point(now, duration) {
        this.line.style.left = `calc(${LEFT}px + ${(now / (duration || 1)).toFixed(4)} * (100% - ${LEFT + RIGHT}px))`;
    }
}

function drawChart(canvas, curves, duration, theme) {
    const ratio = Math.min(globalThis.devicePixelRatio || 1, 2), pen = canvas.getContext("2d");
    const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
    if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
    pen.clearRect(0, 0, width, height);
    if (!curves.length || !width) return;
    const larger = (most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most);
    const top = curves.reduce((most, each) => each.values.reduce(larger, most), 1e-9), limit = curves[0].limit;
    const shown = Number.isFinite(limit) && limit < 1.6 * top ? Math.max(1.08 * limit, 1.1 * top) : 1.15 * top;
    const left = LEFT * ratio, x = (t) => left + (t / (duration || 1)) * (width - left - RIGHT * ratio);
    const y = (value) => height / 2 - (value / shown) * (height / 2 - 8 * ratio);
    const line = (color, wide, points, dashes = []) => {
        pen.strokeStyle = color;
        pen.lineWidth = wide * ratio;
        pen.setLineDash(dashes.map((each) => each * ratio));
        pen.beginPath();
        points.forEach(([a, b], k) => (k ? pen.lineTo(a, b) : pen.moveTo(a, b)));
        pen.stroke();
    };
    line(theme.rule, 1, [[left, y(0)], [width, y(0)]]);
    if (Number.isFinite(limit)) {
        for (const sign of [-1, 1]) line(theme.alarm, 1, [[left, y(sign * limit)], [width, y(sign * limit)]], [4, 3]);
    }
    pen.fillStyle = theme.faint;
    pen.font = `${10.5 * ratio}px system-ui, sans-serif`;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of [-top, 0, top]) pen.fillText(short(value), left - 5 * ratio, y(value));
    for (const { times, values: own, color, residuals } of curves) {
        if (residuals) line(theme.faint, 1, own.map((_, k) => [x(times[k] - times[0]), y(residuals[k])]));
        line(color, 1.6, own.map((value, k) => [x(times[k] - times[0]), y(value)]));
    }
}

/** A number in few characters; below ``least`` it is rounding. */
function short(value, least = 1e-9) {
    if (!Number.isFinite(value)) return "";
    const size = Math.abs(value);
    if (size <= least) return "0";
    if (size < 1e-3 || size >= 1e5) return value.toExponential(1).replace("-", "\u2212");
    return String(+value.toFixed(size < 1 ? 3 : size < 10 ? 2 : size < 1000 ? 1 : 0)).replace(/^-0$/, "0").replace("-", "\u2212");
}
