// Closed loops that follow their active coordinates: steps along the tangent, then Newton's method (damped).

const CLOSED = 1e-9; // largest error of closure, in rad and sizes
const STRIDE = 0.04; // largest step of a coordinate, in rad and sizes

/** The vector x of least squares |A x - b|, with a small weight of |x|, for rows of A and b. */
function leastSquares(A, b, damping) {
    const n = A.length ? A[0].length : 0, N = [], c = new Float64Array(n);
    for (let i = 0; i < n; i++) {
        N.push(new Float64Array(n));
        for (let j = 0; j <= i; j++) {
            let sum = i === j ? damping : 0;
            for (let k = 0; k < A.length; k++) sum += A[k][i] * A[k][j];
            N[i][j] = sum;
        }
        for (let k = 0; k < A.length; k++) c[i] += A[k][i] * b[k];
    }
    for (let i = 0; i < n; i++) { // Cholesky
        for (let j = 0; j <= i; j++) {
            let sum = N[i][j];
            for (let k = 0; k < j; k++) sum -= N[i][k] * N[j][k];
            N[i][j] = i === j ? Math.sqrt(Math.max(sum, 1e-300)) : sum / N[j][j];
        }
    }
    for (let i = 0; i < n; i++) {
        for (let k = 0; k < i; k++) c[i] -= N[i][k] * c[k];
        c[i] /= N[i][i];
    }
    for (let i = n - 1; i >= 0; i--) {
        for (let k = i + 1; k < n; k++) c[i] -= N[k][i] * c[k];
        c[i] /= N[i][i];
    }
    return c;
}

/**
 * The closed positions after the active coordinate ``moved`` (an index of v) has moved by ``amount``; null if there
 * are none. ``own`` has the functions of the robot; ``passive`` are the indices of v that follow, ``scales`` the units of
 * all coordinates (1 for angles, the size of the robot for lengths).
 */
function followed(own, q, moved, amount, passive, scales) {
    const steps = Math.max(1, Math.ceil(Math.abs(amount) / scales[moved] / STRIDE)), nv = scales.length;
    const rows = (at) => {
        const J = own.closureJacobian(at), count = J.length / nv;
        return Array.from({ length: count }, (_, k) => J.subarray(k * nv, (k + 1) * nv));
    };
    const passives = (J) => J.map((row) => passive.map((k) => row[k] * scales[k]));
    const step = (at, x, first) => {
        const dv = new Float64Array(nv);
        if (first) dv[moved] = amount / steps;
        passive.forEach((k, i) => (dv[k] = x[i] * scales[k]));
        return own.integrate(at, dv);
    };
    const size = (e) => e.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    let at = Float64Array.from(q);
    for (let count = 0; count < steps; count++) {
        const J = rows(at), rate = J.map((row) => (-row[moved] * amount) / steps);
        at = step(at, leastSquares(passives(J), rate, 1e-14), true);
        let error = own.closureError(at), damping = 1e-12;
        for (let trial = 0; trial < 30 && size(error) > CLOSED; trial++) {
            const next = step(at, leastSquares(passives(rows(at)), error.map((each) => -each), damping), false);
            const left = own.closureError(next);
            if (size(left) < size(error)) [at, error, damping] = [next, left, damping / 10];
            else damping = Math.max(100 * damping, 1e-8);
        }
        if (!(size(error) <= 100 * CLOSED)) return null;
    }
    return at;
}
