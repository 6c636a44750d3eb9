// Vectors are arrays of three numbers; matrices are 4 x 4, column by column, as WebGL takes them.

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
const scaled = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => scaled(a, 1 / (norm(a) || 1));
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const mix = (a, b, s) => a + (b - a) * s;

/** Two unit vectors that are at right angles to the unit vector z and to each other. */
function across(z) {
    const x = unit(cross(Math.abs(z[0]) < 0.8 ? [1, 0, 0] : [0, 1, 0], z));
    return [x, cross(z, x)];
}

function identity(out = new Float32Array(16), at = 0) {
    out.fill(0, at, at + 16);
    out[at] = out[at + 5] = out[at + 10] = out[at + 15] = 1;
    return out;
}

function product(a, b) {
    const out = new Float32Array(16);
    for (let column = 0; column < 4; column++) {
        for (let row = 0; row < 4; row++) {
            let sum = 0;
            for (let k = 0; k < 4; k++) sum += a[4 * k + row] * b[4 * column + k];
            out[4 * column + row] = sum;
        }
    }
    return out;
}

/** The point p moved by the matrix that starts at m[at]. */
const moved = (m, p, at = 0) => [
    m[at] * p[0] + m[at + 4] * p[1] + m[at + 8] * p[2] + m[at + 12],
    m[at + 1] * p[0] + m[at + 5] * p[1] + m[at + 9] * p[2] + m[at + 13],
    m[at + 2] * p[0] + m[at + 6] * p[1] + m[at + 10] * p[2] + m[at + 14],
];

/** The vector p turned by the matrix that starts at m[at]. */
const turned = (m, p, at = 0) => subtract(moved(m, p, at), [m[at + 12], m[at + 13], m[at + 14]]);

/** The matrix of a position (3 numbers from p[i] on) and a quaternion x, y, z, w (4 more), written to out[at]. */
function fromPose(p, i, out, at) {
    let [x, y, z, w] = [p[i + 3], p[i + 4], p[i + 5], p[i + 6]];
    const s = 2 / (x * x + y * y + z * z + w * w);
    out[at] = 1 - s * (y * y + z * z);
    out[at + 1] = s * (x * y + w * z);
    out[at + 2] = s * (x * z - w * y);
    out[at + 4] = s * (x * y - w * z);
    out[at + 5] = 1 - s * (x * x + z * z);
    out[at + 6] = s * (y * z + w * x);
    out[at + 8] = s * (x * z + w * y);
    out[at + 9] = s * (y * z - w * x);
    out[at + 10] = 1 - s * (x * x + y * y);
    out[at + 12] = p[i];
    out[at + 13] = p[i + 1];
    out[at + 14] = p[i + 2];
    out[at + 3] = out[at + 7] = out[at + 11] = 0;
    out[at + 15] = 1;
}

/** The quaternion x, y, z, w of a rotation vector (rad). */
function quaternionOf(vector) {
    const angle = norm(vector);
    return [...scaled(vector, angle ? Math.sin(angle / 2) / angle : 0.5), Math.cos(angle / 2)];
}

/** The rotation vector (rad) of the quaternion x, y, z, w that begins at q[at]. */
function rotationVector(q, at) {
    const sign = q[at + 3] < 0 ? -1 : 1, part = [q[at], q[at + 1], q[at + 2]], size = norm(part);
    return scaled(part, size ? (sign * 2 * Math.atan2(size, sign * q[at + 3])) / size : 0);
}

/** The pose between two (7 numbers each, from a[i] and b[j] on), written to out[0]; quaternions by the short way. */
function betweenPoses(a, i, b, j, s, out) {
    const sign = a[i + 3] * b[j + 3] + a[i + 4] * b[j + 4] + a[i + 5] * b[j + 5] + a[i + 6] * b[j + 6] < 0 ? -1 : 1;
    for (let k = 0; k < 3; k++) out[k] = mix(a[i + k], b[j + k], s);
    for (let k = 3; k < 7; k++) out[k] = mix(a[i + k], sign * b[j + k], s);
}

function perspective(angle, aspect, near, far) {
    const f = 1 / Math.tan(angle / 2), out = new Float32Array(16);
    out[0] = f / aspect;
    out[5] = f;
    out[10] = (far + near) / (near - far);
    out[11] = -1;
    out[14] = (2 * far * near) / (near - far);
    return out;
}

function lookAt(eye, target, up) {
    const z = unit(subtract(eye, target)), x = unit(cross(up, z)), y = cross(z, x);
    return new Float32Array([
        x[0], y[0], z[0], 0, x[1], y[1], z[1], 0, x[2], y[2], z[2], 0, -dot(x, eye), -dot(y, eye), -dot(z, eye), 1,
    ]);
}

/** The projection along the direction of light onto the plane dot(up, x) = level: it flattens bodies to their shadow. */
function shadowOn(up, level, light) {
    const d = dot(up, light), out = new Float32Array(16);
    for (let column = 0; column < 3; column++) {
        for (let row = 0; row < 3; row++) out[4 * column + row] = (row === column) - (light[row] * up[column]) / d;
    }
    for (let row = 0; row < 3; row++) out[12 + row] = (light[row] * level) / d;
    out[15] = 1;
    return out;
}
