// Triangles with normals. Corners are smooth where faces meet at less than SHARP, and edges elsewhere.

const SHARP = Math.cos((35 * Math.PI) / 180);
const FLOATS = 7; // of a corner: position, normal, and colour as four bytes

/** The vertices (n x 3) of a shape under an affine map of 12 numbers (rows of a 3 x 4 matrix). */
function mapped(vertices, map) {
    if (!map) return vertices;
    const out = new Float32Array(vertices.length);
    for (let k = 0; k < vertices.length; k += 3) {
        const [x, y, z] = [vertices[k], vertices[k + 1], vertices[k + 2]];
        for (let row = 0; row < 3; row++) {
            const m = 4 * row;
            out[k + row] = map[m] * x + map[m + 1] * y + map[m + 2] * z + map[m + 3];
        }
    }
    return out;
}

/** The corners of a surface, position and normal (6 numbers each), and its faces as indices of corners. */
function corners(vertices, faces) {
    const count = faces.length / 3, normals = new Float32Array(3 * count), areas = new Float32Array(count);
    const around = Array.from({ length: vertices.length / 3 }, () => []);
    const vertex = (k) => [vertices[3 * k], vertices[3 * k + 1], vertices[3 * k + 2]];
    for (let face = 0; face < count; face++) {
        const [a, b, c] = [0, 1, 2].map((k) => vertex(faces[3 * face + k]));
        const n = cross(subtract(b, a), subtract(c, a)), area = norm(n);
        areas[face] = area;
        normals.set(scaled(n, 1 / (area || 1)), 3 * face);
        for (let k = 0; k < 3; k++) around[faces[3 * face + k]].push(face);
    }
    const out = [], indices = new Uint32Array(3 * count), known = new Map();
    for (let face = 0; face < count; face++) {
        const own = normals.subarray(3 * face, 3 * face + 3);
        for (let k = 0; k < 3; k++) {
            const index = faces[3 * face + k], n = [0, 0, 0];
            for (const other of around[index]) {
                const its = normals.subarray(3 * other, 3 * other + 3);
                if (dot(own, its) > SHARP) for (let i = 0; i < 3; i++) n[i] += areas[other] * its[i];
            }
            const way = norm(n) > 0 ? unit(n) : [0, 0, 1];
            const key = `${index} ${way.map((each) => Math.round(200 * each)).join(" ")}`;
            if (!known.has(key)) {
                known.set(key, out.length / 6);
                out.push(...vertex(index), ...way);
            }
            indices[3 * face + k] = known.get(key);
        }
    }
    return { points: new Float32Array(out), indices };
}

/** Corners for the GPU (position, normal and colour) and faces, from several parts [corners, colour]. */
function painted(parts) {
    const total = (name) => parts.reduce((sum, [each]) => sum + each[name].length, 0);
    const data = new Float32Array((FLOATS * total("points")) / 6), bytes = new Uint8Array(data.buffer);
    const faces = new Uint32Array(total("indices"));
    let at = 0, face = 0;
    for (const [{ points, indices }, color] of parts) {
        const own = color.map((each) => Math.round(255 * each)), start = at;
        for (let k = 0; k < points.length; k += 6, at++) {
            data.set(points.subarray(k, k + 6), FLOATS * at);
            bytes.set(own, 4 * (FLOATS * at + 6));
        }
        for (let k = 0; k < indices.length; k++) faces[face++] = start + indices[k];
    }
    return { data, faces };
}

/** Vertices (n x 3) moved outwards by a distance (m), and faces whose corners go counterclockwise, seen from outside. */
function grown(vertices, faces, by) {
    const normals = new Float32Array(vertices.length), vertex = (k) => [...vertices.subarray(3 * k, 3 * k + 3)];
    const middle = [0, 1, 2].map((k) => (3 / vertices.length) * vertices.reduce((sum, each, at) => (at % 3 === k ? sum + each : sum), 0));
    let volume = 0;
    for (let face = 0; face < faces.length; face += 3) {
        const own = [...faces.subarray(face, face + 3)], [a, b, c] = own.map(vertex);
        const n = cross(subtract(b, a), subtract(c, a));
        volume += dot(n, subtract(a, middle));
        for (const index of own) for (let k = 0; k < 3; k++) normals[3 * index + k] += n[k];
    }
    const out = new Float32Array(vertices), far = volume < 0 ? -by : by;
    for (let k = 0; k < out.length; k += 3) {
        const n = [...normals.subarray(k, k + 3)], length = norm(n) || 1;
        for (let i = 0; i < 3; i++) out[k + i] += (far * n[i]) / length;
    }
    return { vertices: out, faces: volume < 0 ? faces.slice().reverse() : faces };
}

/** The surfaces of a robot, joined for each link and kind, and ``grow`` m larger: [{link, kind, opacity, data, faces}]. */
function surfacesOf(robot, grow = 0) {
    const groups = new Map();
    for (const each of robot.shown) {
        const shape = robot.shapes[each.shape];
        const key = `${each.link} ${each.kind} ${each.color[3]}`;
        if (!groups.has(key)) groups.set(key, { ...each, opacity: each.color[3], parts: [] });
        const own = { vertices: mapped(shape.vertices, each.map), faces: shape.faces };
        const { vertices, faces } = grow ? grown(own.vertices, own.faces, grow) : own;
        groups.get(key).parts.push([corners(vertices, faces), each.color]);
    }
    return [...groups.values()].map((each) => ({ ...each, ...painted(each.parts), parts: null }));
}

/** Arrows, tubes and marks that change with every picture: one growing list of corners. */
class Strokes {
    constructor() {
        this.room = new Float32Array(1 << 15);
        this.bytes = new Uint8Array(this.room.buffer);
        this.clear();
    }

    clear() {
        this.count = 0;
    }

    corner(at, normal, color) {
        const start = this.count * FLOATS;
        if (start + FLOATS > this.room.length) {
            const more = new Float32Array(2 * this.room.length);
            more.set(this.room);
            this.room = more;
            this.bytes = new Uint8Array(more.buffer);
        }
        this.room.set(at, start);
        this.room.set(normal, start + 3);
        this.bytes.set(color, 4 * (start + 6));
        this.count++;
    }

    /** A surface of revolution about the line from a point: rings of [distance along it, radius], slope of its normal. */
    turn(from, way, rings, color, sides = 12) {
        const [x, y] = across(way);
        const ring = ([along, radius], angle) =>
            add(add(from, scaled(way, along)), add(scaled(x, radius * Math.cos(angle)), scaled(y, radius * Math.sin(angle))));
        for (let k = 0; k + 1 < rings.length; k++) {
            const [low, high] = [rings[k], rings[k + 1]];
            const length = Math.hypot(high[0] - low[0], high[1] - low[1]) || 1;
            const outward = (high[0] - low[0]) / length, forward = (low[1] - high[1]) / length;
            const normal = (angle) =>
                add(scaled(way, forward), add(scaled(x, outward * Math.cos(angle)), scaled(y, outward * Math.sin(angle))));
            for (let side = 0; side < sides; side++) {
                const a = (2 * Math.PI * side) / sides, b = (2 * Math.PI * (side + 1)) / sides;
                for (const [which, angle] of [[low, a], [low, b], [high, b], [low, a], [high, b], [high, a]]) {
                    this.corner(ring(which, angle), normal(angle), color);
                }
            }
        }
    }

    arrow(from, vector, radius, color) {
        const length = norm(vector);
        if (!(length > 1e-9)) return;
        const way = scaled(vector, 1 / length), thin = Math.min(radius, length / 6), head = Math.min(length / 2, 5 * thin);
        const neck = length - head;
        this.turn(from, way, [[0, 0], [0, thin], [neck, thin], [neck, 2.2 * thin], [length, 0]], color);
    }

    /** Three axes of a frame whose matrix starts at m[at]: red x, green y, blue z. */
    axes(m, at, size, radius) {
        const origin = [m[at + 12], m[at + 13], m[at + 14]];
        AXES.forEach((color, k) => {
            const axis = [m[at + 4 * k], m[at + 4 * k + 1], m[at + 4 * k + 2]];
            this.turn(origin, axis, [[0, radius], [size, radius], [size, 0]], color, 8);
        });
    }

    ball(at, radius, color, count = 8, sides = 16) {
        const rings = Array.from({ length: count + 1 }, (_, k) => {
            const angle = Math.PI * (k / count - 0.5);
            return [radius * Math.sin(angle), radius * Math.cos(angle)];
        });
        this.turn(at, [0, 0, 1], rings, color, sides);
    }

    tube(points, radius, color) {
        for (let k = 0; k + 1 < points.length; k++) {
            const way = subtract(points[k + 1], points[k]), length = norm(way);
            if (length > 1e-7) this.turn(points[k], scaled(way, 1 / length), [[0, radius], [length, radius]], color, 6);
        }
    }

    get data() {
        return this.room.subarray(0, FLOATS * this.count);
    }
}

const AXES = [[222, 66, 66, 255], [58, 160, 82, 255], [60, 112, 222, 255]];
