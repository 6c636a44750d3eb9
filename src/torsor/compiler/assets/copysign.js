// The magnitude of x with the sign of y, which may be -0 or NaN: the sign of a NaN is its first bit.
const torsor$bits = new DataView(new ArrayBuffer(8));
function torsor$copysign(x, y) {
    const size = Math.abs(x);
    if (y === y) return y < 0 || (y === 0 && 1 / y < 0) ? -size : size;
    torsor$bits.setFloat64(0, y);
    return torsor$bits.getInt8(0) < 0 ? -size : size;
}
