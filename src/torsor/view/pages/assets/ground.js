// The ground: a disc and lines in squares of 1, 2 or 5 times a power of ten, in m, which the camera never leaves.

const SQUARES = 50; // to each side
const BOLD = 5; // every fifth line
const ROUND = 48; // corners of the disc

const LOW_EARTH = [116, 122, 132], HIGH_EARTH = [162, 168, 176]; // colours of a terrain, by height

/** The corners and faces of a terrain: flat pieces between lines x (m) and y (n) with heights z (m x n). */
function terrainOf({ x, y, z }) {
    const [rows, columns] = z.shape, count = (rows - 1) * (columns - 1), faces = new Uint32Array(6 * count);
    const data = new Float32Array(4 * FLOATS * count), bytes = new Uint8Array(data.buffer);
    const low = z.reduce((a, b) => Math.min(a, b)), range = z.reduce((a, b) => Math.max(a, b)) - low || 1;
    for (let piece = 0; piece < count; piece++) {
        const i = Math.floor(piece / (columns - 1)), j = piece % (columns - 1);
        const points = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]].map(([a, b]) => [x[a], y[b], z[a * columns + b]]);
        const normal = unit(cross(subtract(points[2], points[0]), subtract(points[3], points[1])));
        points.forEach((point, k) => {
            const at = FLOATS * (4 * piece + k);
            data.set(point, at);
            data.set(normal, at + 3);
            const part = (point[2] - low) / range;
            bytes.set([0, 1, 2].map((i) => mix(LOW_EARTH[i], HIGH_EARTH[i], part)).concat(255), 4 * (at + 6));
        });
        faces.set([0, 1, 2, 0, 2, 3].map((k) => 4 * piece + k), 6 * piece);
    }
    return [data, faces];
}

class Ground {
    /** ``basis`` are two level axes and the direction up; ``height`` (m) is that of the ground along it. */
    constructor(renderer, basis, height) {
        Object.assign(this, { renderer, basis, height });
        const disc = [], lines = { thin: [], thick: [] };
        for (let k = 0; k < ROUND; k++) {
            const [a, b] = [k, k + 1].map((each) => (2 * Math.PI * each) / ROUND);
            disc.push(0, 0, 0, Math.cos(a), Math.sin(a), 0, Math.cos(b), Math.sin(b), 0);
        }
        for (let k = -SQUARES; k <= SQUARES; k++) {
            const own = k % BOLD ? lines.thin : lines.thick;
            for (let from = -SQUARES; from < SQUARES; from += BOLD) { // in pieces: some GPUs lose lines that pass the camera
                own.push(k, from, 0, k, from + BOLD, 0, from, k, 0, from + BOLD, k, 0);
            }
        }
        const mesh = (places) => renderer.mesh(new Float32Array(places));
        Object.assign(this, { disc: mesh(disc), thin: mesh(lines.thin), thick: mesh(lines.thick) });
    }

    /** The length of a square (m) of a ground that is seen up to ``reach``. */
    static cell(reach) {
        const least = reach / (SQUARES - BOLD), power = 10 ** Math.floor(Math.log10(least));
        return power * [1, 2, 5, 10].find((each) => each * power >= 0.999 * least);
    }

    /** The matrix that puts units of the ground, ``size`` long, around a point of it. */
    placed(size, at) {
        const [x, y, z] = this.basis;
        return new Float32Array([...scaled(x, size), 0, ...scaled(y, size), 0, ...z, 0, ...at, 1]);
    }

    /** Draw it around its point ``middle``, up to ``reach``; from below, its lines alone. */
    draw(middle, reach, theme, above) {
        const { renderer, basis, height } = this, [thin, thick] = theme.lines;
        if (above) renderer.flat(this.disc, this.placed(reach, middle), theme.floor, reach);
        const cell = Ground.cell(reach), bold = BOLD * cell;
        const [a, b] = [0, 1].map((k) => bold * Math.round(dot(middle, basis[k]) / bold)); // lines stay where they are
        const at = add(scaled(basis[2], height), add(scaled(basis[0], a), scaled(basis[1], b))), model = this.placed(cell, at);
        renderer.flat(this.thin, model, thin, 0.6 * reach, true);
        renderer.flat(this.thick, model, thick, reach, true);
    }
}
