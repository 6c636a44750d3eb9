// Powers as in C: 1 to any power is 1, even to NaN, and so is -1 to an infinite power.
function torsor$pow(x, y) {
    return x === 1 || (x === -1 && (y === Infinity || y === -Infinity)) ? 1 : Math.pow(x, y);
}
