// The remainder of IEEE 754, of the division with the nearest quotient. Every step is exact.
function torsor$remainder(x, y) {
    const size = Math.abs(y), huge = size > 1e300;
    if (!(Math.abs(x) < Infinity) || size !== size || size === 0) return NaN;
    let rest = size <= Number.MAX_VALUE / 2 ? Math.abs(x) % (2 * size) : Math.abs(x);
    if (huge ? rest > size / 2 : 2 * rest > size) {
        rest -= size;
        if (huge ? rest >= size / 2 : 2 * rest >= size) rest -= size;
    }
    return x < 0 || (x === 0 && 1 / x < 0) ? -rest : rest;
}
